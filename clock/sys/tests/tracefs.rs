//! An instance of the kernel's tracing of our own. Where the kernel does not trace for us, the tests print why and end.

use ffclock_counter::CounterId;
use ffclock_sys::{TraceInstance, TraceUnavailable};

/// The result, or `None` with the reason printed where this host cannot trace.
fn permitted<T>(result: Result<T, TraceUnavailable>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(
            error @ (TraceUnavailable::NoTracefs(_) | TraceUnavailable::NoInstance(_) | TraceUnavailable::NoClock(_)),
        ) => {
            println!("SKIP: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_instance_is_removed_with_its_owner() {
    let Some(mut instance) = permitted(TraceInstance::create(CounterId::MonotonicRaw, 8)) else { return };
    let format = instance.enable("sched/sched_switch", "").unwrap();
    assert!(format.field("prev_comm").is_some());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let mut events = 0;
    instance.drain(|event| events += u32::from(event.id() == Some(format.id()))).unwrap();
    assert!(events > 0, "sleeping is a switch of threads");
    let path = instance.path().to_owned();
    assert!(path.is_dir());
    drop(instance);
    assert!(!path.exists());
}

#[test]
fn what_the_kernel_does_not_know_is_named() {
    let Some(mut instance) = permitted(TraceInstance::create(CounterId::MonotonicRaw, 8)) else { return };
    let error = instance.enable("net/no_such_event", "").unwrap_err();
    assert!(error.to_string().contains("net/no_such_event"), "{error}");
    let error = instance.enable("net/net_dev_xmit", "nonsense ==").unwrap_err();
    assert!(matches!(error, TraceUnavailable::Setting { .. }), "{error}");
}
