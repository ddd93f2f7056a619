//! A headless Chromium, driven through its pipe of the DevTools protocol.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a busy machine may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page open; ended when dropped.
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    session: Option<String>,
    asked: u64,
    /// What the page reported: requests, exceptions, entries of the log.
    pub events: Vec<Value>,
}

impl Browser {
    /// The browser of this machine, or why there is none to be had.
    pub fn start(directory: &Path) -> Result<Self, String> {
        let program = ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))
            .ok_or("no Chromium here: tools/setup installs it")?;
        let (to, from) = (directory.join("to-browser"), directory.join("from-browser"));
        let made = Command::new("mkfifo").args([&to, &from]).status().map_err(|error| error.to_string())?;
        assert!(made.success());
        // The shell gives the pipes the numbers that the browser expects; opened for both directions, none blocks.
        let script = format!("exec \"$0\" \"$@\" 3<>'{}' 4<>'{}'", to.display(), from.display());
        let child = Command::new("sh")
            .args(["-c", &script, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe", "--hide-scrollbars", "about:blank"])
            .arg(format!("--user-data-dir={}", directory.join("browser").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(directory.join("browser.log")).map_err(|error| error.to_string())?)
            .process_group(0)
            .spawn()
            .map_err(|error| error.to_string())?;
        let open =
            |path: &Path| OpenOptions::new().read(true).write(true).open(path).map_err(|error| error.to_string());
        let mut browser =
            Browser { child, to: open(&to)?, from: listen(open(&from)?), session: None, asked: 0, events: Vec::new() };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let session = browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Network.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        Ok(browser)
    }

    /// Opens an address in a window of this size.
    pub fn open(&mut self, address: &str, (width, height): (u32, u32)) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        self.call("Page.navigate", json!({"url": address}));
    }

    /// Asks the browser, and gives its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let mut question = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            question["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{question}\0").as_bytes()).expect("the browser listens");
        loop {
            let message = self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer to {method}"));
            if message["id"] == json!(self.asked) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// The value of an expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// What an expression on the page has promised.
    pub fn promised(&mut self, expression: &str) -> Value {
        let question = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", question);
        assert!(result.get("exceptionDetails").is_none(), "{result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.value(&format!("Boolean({expression})")) != json!(true) {
            let text = self.value("document.body ? document.body.innerText : ''");
            assert!(begin.elapsed() < PATIENCE, "never: {expression}\n{text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Presses and releases a key, by its name in JavaScript.
    pub fn press(&mut self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            let code = match key {
                "Enter" => 13,
                "Tab" => 9,
                _ => 0,
            };
            self.call(
                "Input.dispatchKeyEvent",
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}),
            );
        }
    }

    /// What is in the window, as PNG, in base 64.
    pub fn picture(&mut self) -> String {
        self.call("Page.captureScreenshot", json!({"format": "png"}))["data"].as_str().unwrap_or_default().to_owned()
    }

    /// The events of a kind so far.
    pub fn events(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]).collect()
    }
}

impl Drop for Browser {
    /// A browser is several processes: all of its group are ended.
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "KILL", "--", &format!("-{}", self.child.id())]).status();
        let _ = self.child.wait();
    }
}

/// The messages of the browser, each ended by a zero.
fn listen(from: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(from).split(0) {
            let Some(value) = message.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) else { return };
            if sender.send(value).is_err() {
                return;
            }
        }
    });
    receiver
}
