//! Shows the counter and the estimate of FreeBSD's feed-forward clock; `tools/freebsd` links it, which proves the calls
//! against the C library.

#[cfg(target_os = "freebsd")]
fn main() -> std::io::Result<()> {
    use ffclock_freebsd::kernel;
    // Handing over is linked too, but left to a daemon that has something to say.
    let _: fn(&ffclock_freebsd::KernelEstimate) -> std::io::Result<()> = std::hint::black_box(kernel::set_estimate);
    // As many ticks as counters of 1 MHz to 10 GHz make in 1 to 100 us.
    println!("counter {}", kernel::read_counter(&(1..=1_000_000))?.raw());
    println!("{:?}", kernel::estimate()?);
    Ok(())
}

#[cfg(not(target_os = "freebsd"))]
fn main() {
    println!("FreeBSD alone has this clock");
}
