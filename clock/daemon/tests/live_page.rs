//! The page on the metrics address: in a browser where there is one, and with more readers than there is room for.

mod common;

use common::browser::Browser;
use common::server::{TestServer, Truth};
use common::{Daemon, Scratch, server_section};
use ffclock_control::protocol::{BeliefReport, StatusReport};
use ffclock_counter::CounterId;
use ffclock_units::{Bound, Span, Status};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Polls come every 250 ms, and a silent server is given up after 4 of them.
const PATIENCE: &str = "reply_timeout = \"50 ms\"\nunreachable_after = 4\nburst_count = 0";

struct Site {
    scratch: Scratch,
    servers: Vec<TestServer>,
    daemon: Daemon,
    port: u16,
}

impl Site {
    /// A daemon with three servers, of which the last is false.
    fn with_a_liar(name: &str) -> Self {
        let truth = Truth::beginning_now(CounterId::CPU);
        let servers: Vec<TestServer> = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
        for server in &servers {
            server.behave(|behaviour| behaviour.root_dispersion = Bound::of(Span::from_micros(300)));
        }
        servers[2].behave(|behaviour| behaviour.lie = Span::from_millis(50));
        let scratch = Scratch::new(name);
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let sections: String = servers.iter().map(|server| server_section(server.address, PATIENCE)).collect();
        let top = scratch.daemon_section(&format!("counter = \"tsc\"\nmetrics = \"127.0.0.1:{port}\""));
        let daemon = Daemon::start(&scratch, &(top + &sections));
        daemon.wait_for("a falseticker and a synchronised clock", |status| {
            status.sources.iter().any(|source| source.belief == BeliefReport::Falseticker)
                && status.clock.as_ref().is_some_and(|clock| clock.status == Status::Synchronised)
        });
        Site { scratch, servers, daemon, port }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("the daemon lets in")
    }

    fn get(&self, target: &str) -> String {
        let mut stream = self.connect();
        stream
            .write_all(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
            .expect("it takes a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

#[test]
fn the_page_is_one_file_and_its_state_that_of_the_control_socket() {
    let site = Site::with_a_liar("live-state");
    let page = site.get("/");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("text/html"), "{}", &page[..200]);
    assert!(page.len() < 200_000, "{} bytes", page.len());
    let elsewhere = ["https://", "src=", "@import", "url("];
    assert!(!elsewhere.iter().any(|other| page.contains(other)), "it loads nothing");
    assert_eq!(page.matches("fetch(").count(), 1);
    let answer = site.get("/live.json");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let (shown, asked): (Value, _) = (serde_json::from_str(body).unwrap(), site.daemon.status().unwrap());
    assert_eq!(shown["answer"], "status");
    assert_eq!(shown["sources"].as_array().map(Vec::len), Some(asked.sources.len()));
    assert!(site.get("/reload").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_thousand_readers_who_never_read_are_bounded() {
    let site = Site::with_a_liar("live-readers");
    let memory = site.daemon.process_status("VmRSS:");
    for _ in 0..5 {
        // They ask and read nothing; the descriptors of this process allow no more at a time.
        let readers: Vec<TcpStream> = (0..200)
            .map(|number| {
                let mut stream = site.connect();
                let target = if number % 2 == 0 { "/" } else { "/live.json" };
                let _ = stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes());
                stream
            })
            .collect();
        assert!(site.get("/live.json").contains("\"answer\":\"status\""), "the next one is answered");
        drop(readers);
    }
    let status = site.daemon.status().expect("the control socket answers");
    assert!(status.clock.as_ref().is_some_and(|clock| clock.status != Status::Unsynchronised));
    let exchanges = |status: &StatusReport| status.sources.iter().map(|source| source.exchanges).sum::<u64>();
    site.daemon.wait_for("more exchanges", |later| exchanges(later) > exchanges(&status) + 6);
    let grown = site.daemon.process_status("VmRSS:").saturating_sub(memory);
    assert!(grown < 4096, "{grown} KiB more for 1000 readers");
}

#[test]
fn a_browser_shows_it_at_two_sizes_and_obeys_keys() {
    let site = Site::with_a_liar("live-browser");
    let mut browser = match Browser::start(site.scratch.path()) {
        Ok(browser) => browser,
        Err(reason) => return println!("SKIP: {reason}"),
    };
    let before = site.daemon.status().expect("the control socket answers");
    for (name, size) in [("live-wide", (1280, 1000)), ("live-narrow", (390, 844))] {
        browser.open(&site.address(), size);
        browser.wait_for("document.querySelectorAll('#sources tr').length === 3 && samples.length > 4");
        shows_the_state(&mut browser, size.0);
        keep_picture(&mut browser, name);
    }
    obeys_keys(&mut browser);
    the_colour_blind_distinguish_states(&mut browser);
    asks_once_a_second(&mut browser, &site.address());
    site.servers.iter().for_each(|server| server.behave(|behaviour| behaviour.silent = true));
    browser.wait_for("document.getElementById('status').textContent === '◇ holdover'");
    let after = site.daemon.status().expect("the control socket answers");
    assert_eq!(after.counter, before.counter, "looking changed nothing");
    drop(site.daemon);
    browser.wait_for("document.getElementById('trouble').textContent.includes('No answer from the daemon')");
    assert_eq!(browser.events("Runtime.exceptionThrown"), Vec::<&Value>::new());
}

/// What it costs the daemon that a browser watches: its processor time, of all threads, in a minute with a request each
/// second and in one without, by the scheduler's own account, beside three servers at the usual poll. Kept out of the
/// usual run, as other figures are.
#[test]
#[ignore = "a measurement of two minutes"]
fn what_a_watcher_costs() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers: Vec<TestServer> = (0..3).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    let scratch = Scratch::new("live-cost");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let sections: String = servers.iter().map(|server| server_section(server.address, "")).collect();
    let top = scratch.daemon_section(&format!("counter = \"tsc\"\nmetrics = \"127.0.0.1:{port}\""));
    let daemon = Daemon::start(&scratch, &(top + &sections.replace("125 ms", "16 s")));
    daemon.wait_for("a clock", |status| status.clock.is_some());
    let site = Site { scratch, servers, daemon, port };
    // The requests with which it begins are over then.
    std::thread::sleep(Duration::from_secs(30));
    let [alone, watched] = [false, true].map(|is_watched| part_of_a_core(&site, is_watched));
    println!(
        "of a core: {:.3} % alone, {:.3} % watched, {:+.3} % more",
        alone * 100.0,
        watched * 100.0,
        (watched - alone) * 100.0
    );
}

/// What the daemon takes of a core in a minute.
fn part_of_a_core(site: &Site, is_watched: bool) -> f64 {
    let (before, begin) = (site.daemon.processor_time(), Instant::now());
    while begin.elapsed() < Duration::from_secs(60) {
        if is_watched {
            assert!(site.get("/live.json").contains("\"answer\":\"status\""));
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    (site.daemon.processor_time() - before).as_secs_f64() / begin.elapsed().as_secs_f64()
}

/// All that matters can be seen, in words too, and nothing is cut off.
fn shows_the_state(browser: &mut Browser, width: u32) {
    assert_eq!(browser.value("document.getElementById('status').textContent"), "● synchronised");
    let verdicts = browser.value("[...document.querySelectorAll('#sources tr')].map(row => row.cells[1].textContent)");
    assert_eq!(verdicts[2], "✕ falseticker");
    assert!(!verdicts[0].as_str().unwrap_or("✕").contains('✕'), "{verdicts}");
    assert_eq!(browser.value("innerWidth"), json!(width));
    assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth"), json!(true), "it scrolls sideways");
    let bound = browser.value("document.querySelector('#band .bound').getBBox().height");
    assert!(bound.as_f64().is_some_and(|height| height > 5.0), "the band is {bound} high");
    assert_eq!(browser.value("document.querySelectorAll('#floors circle').length > 8"), json!(true));
    let words = browser.value("document.getElementById('band-words').textContent");
    assert!(words.as_str().is_some_and(|words| words.contains("bound ±") && words.contains('✕')), "{words}");
    let outside = "[...document.querySelectorAll('#band text, #floors text')].filter(text => {\
        const box = text.getBoundingClientRect(), picture = text.ownerSVGElement.getBoundingClientRect();\
        return box.left < picture.left - 1 || box.right > picture.right + 1 || box.bottom > picture.bottom + 2;\
    }).map(text => text.textContent)";
    assert_eq!(browser.value(outside), json!([]), "words that leave their picture");
}

fn obeys_keys(browser: &mut Browser) {
    let scale = "document.getElementById('scale').textContent";
    assert_eq!(browser.value(scale), "Logarithmic scale (L)");
    browser.press("l");
    assert_eq!(browser.value(scale), "Linear scale (L)");
    browser.value("document.getElementById('pause').focus()");
    browser.press("Tab");
    assert_eq!(browser.value("document.activeElement.id"), "band", "the picture follows the buttons");
    browser.press("ArrowLeft");
    browser.wait_for(
        "document.querySelector('#band .cursor') && !/^now/.test(document.getElementById('band-words').textContent)",
    );
    browser.press("Escape");
    browser.wait_for("!document.querySelector('.cursor')");
    browser.press("Tab");
    browser.press("Enter");
    browser.wait_for("document.querySelectorAll('tr.picked').length === 1");
    let focused = "document.activeElement === document.querySelector('#sources tr')";
    assert_eq!(browser.value(focused), json!(true), "the focus stays while the table is renewed");
    browser.press("p");
    browser.wait_for("document.getElementById('pause').textContent === 'Go on (P)' && !asking");
    let kept = browser.value("samples.length");
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(browser.value("samples.length"), kept, "nothing is asked during a pause");
    browser.press("p");
    browser.wait_for(&format!("samples.length > {kept}"));
}

/// The states of a clock and the mark of a falseticker, by their classes.
const STATES: [&str; 5] = ["synchronised", "warming-up", "holdover", "unsynchronised", "falseticker"];
/// Colours that differ by less are hard to distinguish side by side; 2.3 is what is just noticed [CIE 1976].
const DISTINCT: f64 = 10.0;
/// The least contrast of large letters and of what is no letter against their paper (WCAG 2.1, 1.4.3 and 1.4.11).
const CONTRAST: f64 = 3.0;

/// What each colour becomes for eyes that lack a kind of cones, or all, on light and on dark paper, by what the browser
/// paints then. Without any colour the signs and words beside it are left, and must be legible.
fn the_colour_blind_distinguish_states(browser: &mut Browser) {
    browser.value(&format!("{SWATCHES}({})", json!(STATES)));
    for scheme in ["light", "dark"] {
        let wanted = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.call("Emulation.setEmulatedMedia", wanted);
        for deficiency in ["none", "protanopia", "deuteranopia", "tritanopia", "achromatopsia"] {
            browser.call("Emulation.setEmulatedVisionDeficiency", json!({"type": deficiency}));
            let picture = browser.picture();
            let painted = browser.promised(&format!("{PIXELS}('{picture}', {})", STATES.len()));
            let [paper, states @ ..] = &colours(&painted)[..] else { panic!("{painted}") };
            let seen = format!("{deficiency} on {scheme} paper: {painted}");
            for (index, state) in states.iter().enumerate() {
                assert!(contrast(*state, *paper) >= CONTRAST, "{} cannot be read: {seen}", STATES[index]);
                let is_grey = state.iter().all(|part| (part - state[0]).abs() < 0.01);
                assert_eq!(is_grey, deficiency == "achromatopsia", "what is emulated: {seen}");
                // Those two share a colour, and differ by where they stand.
                let others = states[..index].iter().filter(|_| STATES[index] != "falseticker" && !is_grey);
                for other in others {
                    let apart = difference(*state, *other);
                    assert!(apart >= DISTINCT, "{} is like another: {apart:.1}, {seen}", STATES[index]);
                }
            }
        }
    }
    browser.call("Emulation.setEmulatedVisionDeficiency", json!({"type": "none"}));
    browser.call("Emulation.setEmulatedMedia", json!({"features": []}));
    browser.value("document.getElementById('swatches').remove()");
}

/// Paints a square of 20 points for the paper and for each class, above all else.
const SWATCHES: &str = "(classes => {
    const row = document.createElement('div');
    row.id = 'swatches';
    row.style = 'position:fixed;left:0;top:0;height:20px;display:flex;z-index:9';
    for (const name of ['', ...classes]) {
        const square = document.createElement('i');
        square.className = name;
        square.style = `width:20px;background:${name ? 'currentColor' : 'var(--paper)'}`;
        row.append(square);
    }
    document.body.append(row);
})";

/// The colours in the middle of the squares of a picture.
const PIXELS: &str = "(async (picture, count) => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width, 20];
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return Array.from({length: count + 1}, (_, square) => [...context.getImageData(20 * square + 10, 10, 1, 1).data]);
})";

/// Colours from 0 to 1, by their red, green and blue.
fn colours(pixels: &Value) -> Vec<[f64; 3]> {
    let part = |pixel: &Value, index: usize| pixel[index].as_f64().expect("a number") / 255.0;
    let pixels = pixels.as_array().expect("pixels");
    pixels.iter().map(|pixel| [part(pixel, 0), part(pixel, 1), part(pixel, 2)]).collect()
}

/// X, Y and Z of CIE 1931 (IEC 61966-2-1, sRGB), white being 1 each.
fn tristimulus(colour: [f64; 3]) -> [f64; 3] {
    let [red, green, blue] =
        colour.map(|part| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) });
    let of = |from_red: f64, from_green: f64, from_blue: f64, white: f64| {
        (from_red * red + from_green * green + from_blue * blue) / white
    };
    [of(0.4124, 0.3576, 0.1805, 0.9505), of(0.2126, 0.7152, 0.0722, 1.0), of(0.0193, 0.1192, 0.9505, 1.089)]
}

/// WCAG 2.1, "contrast ratio".
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let [one, other] = [one, other].map(|colour| tristimulus(colour)[1] + 0.05);
    one.max(other) / one.min(other)
}

/// The distance in L*a*b* (CIE 1976).
fn difference(one: [f64; 3], other: [f64; 3]) -> f64 {
    let [one, other] = [one, other].map(|colour| {
        let [x, y, z] =
            tristimulus(colour).map(|part| if part > 0.008856 { part.cbrt() } else { 7.787 * part + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    });
    one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
}

fn asks_once_a_second(browser: &mut Browser, address: &str) {
    browser.value("0");
    browser.events.clear();
    let begin = Instant::now();
    std::thread::sleep(Duration::from_secs(5));
    browser.value("0");
    let elapsed = begin.elapsed().as_secs();
    let asked: Vec<&str> = browser
        .events("Network.requestWillBeSent")
        .iter()
        .filter_map(|event| event["request"]["url"].as_str())
        .collect();
    assert!(asked.iter().all(|url| *url == format!("{address}live.json")), "{asked:?}");
    assert!((2..=elapsed + 1).contains(&(asked.len() as u64)), "{} times in {elapsed} s", asked.len());
}

/// With FFCLOCK_SCREENSHOTS set to a directory of the checkout, what the browser shows is kept there.
fn keep_picture(browser: &mut Browser, name: &str) {
    let Some(directory) = std::env::var_os("FFCLOCK_SCREENSHOTS") else { return };
    // Something to see in it.
    std::thread::sleep(Duration::from_secs(90));
    let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = checkout.join(directory).join(format!("{name}.png"));
    std::fs::write(path, from_base64(&browser.picture())).expect("the directory can be written");
}

/// RFC 4648, section 4.
fn from_base64(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter_map(|byte| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    });
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for digit in digits {
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}
