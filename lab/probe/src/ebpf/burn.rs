//! Burns a share of processors in the context of soft interrupts.

use super::permission::{explain, hindrance};
use super::skeleton::burn::{BurnSkel, BurnSkelBuilder};
use super::{SOFTIRQ_SHARE_MOST, SOFTIRQ_SLICE, SoftirqBurnt};
use core::mem::MaybeUninit;
use core::time::Duration;
use ffclock_sys::mono_now;
use ffclock_units::{Moment, Mono};
use libbpf_rs::btf::{Btf, types::Enum};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};

/// What the kernel must have, by its name there, and since when it has it.
const NEEDED: [(&str, &str); 2] =
    [("BPF_FUNC_timer_init", "bpf_timer (Linux 5.15)"), ("BPF_FUNC_loop", "bpf_loop (Linux 5.17)")];

/// Timers that burn, one for each processor. Dropped, they are gone, as they are when the process is killed: the kernel
/// takes them away with the last reference to their map.
pub struct SoftirqLoad {
    skeleton: BurnSkel<'static>,
    processors: Vec<usize>,
    begun: Moment<Mono>,
}

impl core::fmt::Debug for SoftirqLoad {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("SoftirqLoad").field("processors", &self.processors).finish_non_exhaustive()
    }
}

impl SoftirqLoad {
    /// Why this machine cannot be loaded in this way, as far as that is known without loading programs.
    pub fn hindrance() -> Option<String> {
        hindrance().or_else(|| missing_helper().err())
    }

    /// Begins to burn on each processor that the calling thread may run on, until it is dropped, and not for longer
    /// than `length`. `course` has the share of each slice; after the last slice comes the first. Shares beyond
    /// [`SOFTIRQ_SHARE_MOST`] count as this.
    ///
    /// # Errors
    /// The kernel does not have or allow it; says what is missing.
    pub fn begin(course: &[f64], length: Duration) -> Result<Self, String> {
        if let Some(reason) = Self::hindrance() {
            return Err(reason);
        }
        libbpf_rs::set_print(None);
        let skeleton = load(course, length)?;
        let processors = ffclock_counter::allowed_cpus().map_err(|error| error.to_string())?;
        let load = SoftirqLoad { skeleton, processors, begun: mono_now() };
        load.start_timers()?;
        Ok(load)
    }

    /// What was burnt until now, on all processors together.
    pub fn burnt(&self) -> SoftirqBurnt {
        let time_ns = (mono_now() - self.begun).as_nanos() as f64;
        let mut sum = SoftirqBurnt { processors: self.processors.len(), share: 0.0, callbacks: 0, elsewhere: 0 };
        let Some(data) = self.skeleton.maps.bss_data.as_ref() else { return sum };
        for burnt in self.processors.iter().filter_map(|processor| data.burnt.get(*processor)) {
            sum.share += burnt.ns as f64 / time_ns / sum.processors as f64;
            (sum.callbacks, sum.elsewhere) = (sum.callbacks + burnt.callbacks, sum.elsewhere + burnt.elsewhere);
        }
        sum
    }

    /// A timer belongs to the processor that starts it.
    fn start_timers(&self) -> Result<(), String> {
        for &processor in &self.processors {
            let start = || {
                ffclock_counter::pin_to(processor).map_err(|error| error.to_string())?;
                let output = self.skeleton.progs.begin.test_run(ProgramInput::default());
                match output.map_err(|error| explain(&error))?.return_value.cast_signed() {
                    0 => Ok(()),
                    code => Err(std::io::Error::from_raw_os_error(-code).to_string()),
                }
            };
            // On a thread of its own, which may be pinned.
            let started = std::thread::scope(|scope| scope.spawn(start).join());
            let started = started.unwrap_or_else(|_| Err("the thread that starts it ended".to_owned()));
            started.map_err(|reason| format!("a timer on processor {processor}: {reason}"))?;
        }
        Ok(())
    }
}

/// Whether the kernel has what the programs call, by the names of its own types.
fn missing_helper() -> Result<(), String> {
    let types = Btf::from_vmlinux().map_err(|error| explain(&error))?;
    let helpers = types.type_by_name::<Enum<'_>>("bpf_func_id").ok_or("the kernel does not name its eBPF helpers")?;
    let has = |name: &str| helpers.iter().any(|helper| helper.name.is_some_and(|other| other == name));
    match NEEDED.iter().find(|(name, _)| !has(name)) {
        Some((_, words)) => Err(format!("this kernel has no {words}")),
        None => Ok(()),
    }
}

/// Loads the programs with this course, for this long.
fn load(course: &[f64], length: Duration) -> Result<BurnSkel<'static>, String> {
    let slices = u32::try_from(course.len()).ok().filter(|slices| *slices > 0).ok_or("a course has a slice")?;
    // What is opened is dropped with the skeleton. The two words that hold it are leaked.
    let room = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = BurnSkelBuilder::default().open(room).map_err(|error| explain(&error))?;
    open.maps.course.set_max_entries(slices).map_err(|error| explain(&error))?;
    let limits = open.maps.rodata_data.as_deref_mut().ok_or("the programs have no limits")?;
    let most = SOFTIRQ_SLICE.mul_f64(SOFTIRQ_SHARE_MOST);
    limits.slices = slices;
    limits.slice_ns = SOFTIRQ_SLICE.as_nanos() as u64;
    limits.most_ns = most.as_nanos() as u64;
    limits.length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    limits.rest_ns = (SOFTIRQ_SLICE - most).as_nanos() as u64;
    let skeleton = open.load().map_err(|error| explain(&error))?;
    for (slice, share) in (0..slices).zip(course) {
        let work = SOFTIRQ_SLICE.mul_f64(share.clamp(0.0, SOFTIRQ_SHARE_MOST)).as_nanos() as u32;
        let map = &skeleton.maps.course;
        map.update(&slice.to_ne_bytes(), &work.to_ne_bytes(), MapFlags::ANY).map_err(|error| explain(&error))?;
    }
    Ok(skeleton)
}
