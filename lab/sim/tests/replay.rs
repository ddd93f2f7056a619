//! That a trace keeps every bit of a run, and that a run depends on nothing but its seed. That `ffclock-lab replay`
//! shows the same clocks is tested with that command.

use ffclock_sim::{Run, Scenario};
use ffclock_trace::{Recorder, TraceReader, TraceRow};

fn scenario() -> Scenario {
    let text = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"3 h\"\nfrom = \"1 h\"\n[path]\nloss = 0.1\nduplicate = 0.1\nstraggle = 0.05\n";
    Scenario::parse("test", text).expect("a scenario that reads")
}

fn rows(run: &Run) -> Vec<TraceRow> {
    let mut rows = Vec::new();
    run.execute_with(&["classic"], Some(&mut |row: &TraceRow| rows.push(*row)));
    rows
}

#[test]
fn a_recorded_run_is_read_back_to_the_same_bits() {
    let scenario = scenario();
    let run = Run { name: "test", scenario: &scenario, seed: 7 };
    let rows = rows(&run);
    let mut bytes = Vec::new();
    let mut recorder = Recorder::to_writer(&mut bytes, &run.trace_header()).unwrap();
    rows.iter().for_each(|row| recorder.append(row).unwrap());
    drop(recorder);

    let reader = TraceReader::from_reader(Box::new(std::io::Cursor::new(bytes))).unwrap();
    let nominal = reader.header().nominal.unwrap();
    let replayed: Vec<TraceRow> = reader.map(Result::unwrap).collect();
    assert_eq!(replayed, rows);
    assert_eq!(nominal, scenario.counter.nominal());
    let exchanges = rows.iter().filter(|row| row.exchange.is_some()).count();
    assert!(exchanges > 400 && rows.len() > exchanges, "{exchanges} of {}", rows.len());
}

#[test]
fn truth_and_stamps_agree() {
    let scenario = scenario();
    let rows = rows(&Run { name: "test", scenario: &scenario, seed: 7 });
    for row in rows {
        let (Some(exchange), Some(truth)) = (row.exchange, row.truth) else { continue };
        let (sent, received) = (truth.sent.unwrap(), truth.received);
        let ours = (exchange.received.counter - exchange.sent.counter).as_f64() / 3e9;
        let true_time = (received - sent).as_seconds();
        assert!((ours / true_time - 1.0).abs() < 1e-3, "{ours} {true_time}");
        assert!(sent < exchange.server_in && exchange.server_out < received);
    }
}

#[test]
fn the_seed_is_everything() {
    let scenario = scenario();
    let result = |seed| Run { name: "test", scenario: &scenario, seed }.execute(None);
    assert_eq!(result(1), result(1));
    assert_ne!(result(1).clocks, result(2).clocks);
    // What the clocks are does not change what they see.
    let one = Run { name: "test", scenario: &scenario, seed: 1 }.execute_with(&["pll"], None);
    let among_others = result(1).clocks.into_iter().find(|clock| clock.name == "pll");
    assert_eq!(one.clocks.into_iter().next(), among_others);
}
