"""Verdicts on recordings of counters: figures 12 to 18 and table I of the papers, each with what makes it fail."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .counters_figures import allan, interface_alone, is_against_reference, signed, time_errors
from .counters_paper import CLOCK_IQR_S, CLOCK_MEDIAN_BAND_S, LATENCIES, STABILITY_LARGE_PPM, STABILITY_PPM, STRESSED_MEDIANS_S
from .counters_recording import Recording, machines
from .evidence.verdict import FACTOR, WITHIN, Outcome, Status, Verdict, is_near, outcome
from .scales import number_text, time_text
from .stability import allan as confident_allan
from .stability import even_grid

_KERNEL: Final = {"module:tsc": "TSC", "module:hpet": "HPET", "module:acpi_pm": "ACPI fast", "module:acpi_pm_safe": "ACPI safe"}
"""The counters of figure 14, by their names here."""
_RATIO_OF_CALLS: Final = LATENCIES["getcounter() (Linux)"].median / LATENCIES["rdtsc (user space)"].median
_LAPTOP_IQR_S: Final = 8e-6
"""The interquartile range that no machine of figure 18 exceeds."""
_ALIKE: Final = 1.2
"""Clocks of the same stamps whose spreads are within this factor are alike."""
_LARGE_S: Final = 100.0
"""What counts as a large scale in a run of minutes."""
_TAUS_S: Final = (1, 4, 16, 64, 256, 1024)
"""Where a known deviation is compared."""
_CONFIDENCE: Final = 0.95
_HPET_HERTZ, _ACPI_HERTZ = 14.3e6, 3.57e6
_TSC_FACTOR: Final = 1.001
"""The kernel measures the TSC within some ppm; a processor whose clock is not its counter's is further away."""
_TIMER_FACTOR: Final = 1.01
"""The papers give three digits."""
_WORST_FIRST: Final[tuple[Outcome, ...]] = ("differs", "shape only", "as in the paper", "not measured")
_RAW: Final = "monotonic-raw"


class _Found:
    """Collects verdicts that come from the same place."""

    def __init__(self, status: Status, command: str, pulse: KnownPulse | None) -> None:
        self.pulse = pulse
        self.all: list[Verdict] = []
        self.machine = ""
        """Before what was found, where there are several machines."""
        self._status: Status = status
        self._command = command

    @property
    def purpose(self) -> str:
        """What a comparison with a reference is worth; in a guest counters and pulse are of one virtual time."""
        return " (tests the instrument, not an oscillator)" if self._status == "guest" else ""

    def _add(self, figure: str, what: str, texts: tuple[str, str], judged: tuple[float | None, str, Outcome]) -> None:
        ratio, test, word = judged
        what = f"{self.machine}, {what}" if self.machine else what
        new = Verdict(figure, self._status, what, *texts, ratio, test, word, self._command)
        # Of several recordings that show the same, the worst counts.
        place = next((number for number, one in enumerate(self.all) if (one.figure, one.what) == (figure, what)), None)
        if place is None:
            self.all.append(new)
        elif _WORST_FIRST.index(word) < _WORST_FIRST.index(self.all[place].outcome):
            self.all[place] = new

    def value(self, figure: str, what: str, texts: tuple[str, str], ratio: float) -> None:
        """A value of the paper and ours."""
        self._add(figure, what, texts, (ratio, WITHIN, outcome(ratio, None)))

    def frequency(self, what: str, texts: tuple[str, str], ratio: float, shape: tuple[bool, str] | None = None) -> None:
        """A frequency of table I; a shape where the hardware may have another one than the papers'."""
        factor = _TSC_FACTOR if what.startswith("TSC") else _TIMER_FACTOR
        tests = [f"value within {factor - 1.0:.1%}", *([f"shape: {shape[1]}"] if shape else [])]
        self._add("table I", what, texts, (ratio, "; ".join(tests), outcome(ratio, shape[0] if shape else None, factor)))

    def cost(self, figure: str, what: str, texts: tuple[str, str], ratio: float) -> None:
        """A value that may be less than the paper's: then the paper's claim holds, and its value does not."""
        test = f"{WITHIN}; shape: not more than that"
        self._add(figure, what, texts, (ratio, test, outcome(ratio, 0.0 < ratio <= FACTOR)))

    def shape(self, figure: str, what: str, texts: tuple[str, str], shape: tuple[bool, str]) -> None:
        """A shape: whether it holds, and what it asks for."""
        holds, asked = shape
        self._add(figure, what, texts, (None, f"shape: {asked}", outcome(None, holds)))


@dataclass(frozen=True)
class KnownPulse:
    """A reference that is a test of the instrument: its noise is white frequency noise of this Allan deviation at 1 s."""

    name: str
    deviation: float


def judge(
    recordings: Sequence[Recording],
    made: tuple[Status, str],
    pulse: KnownPulse | None = None,
    beside: Sequence[Recording] = (),
) -> list[Verdict]:
    """The verdicts on what was measured; nothing on what was not.

    ``made`` is where and by which command; recordings ``beside`` count for figure 18 alone, which compares machines.
    """
    found = _Found(*made, pulse)
    judges = {"stability": _stability, "latency": _latency, "clock": _clock}
    by_machine = machines(recordings)
    for machine, mine in by_machine.items():
        found.machine = (machine.host or machine.label) if len(by_machine) > 1 else ""
        for recording in mine:
            if recording.instrument in judges:
                judges[recording.instrument](found, recording)
    found.machine = ""
    _machines(found, [recording for recording in (*beside, *recordings) if recording.instrument == "clock"])
    return found.all


def _stability(found: _Found, recording: Recording) -> None:
    _frequencies(found, recording)
    if found.pulse is not None and recording.about.get("reference") == found.pulse.name:
        _recovered(found, recording, found.pulse)
        return
    # A counter against its own base shows how it is read, and no stability.
    if not is_against_reference(recording):
        return
    for name, (t, x) in time_errors(recording).items():
        taus, deviations, _ = allan(t, x)
        for least, limit_ppm in ((10.0, STABILITY_PPM), (_LARGE_S, STABILITY_LARGE_PPM)):
            worst = max((float(one) for tau, one in zip(taus, deviations, strict=True) if tau >= least), default=None)
            if worst is not None:
                texts = (f"below {limit_ppm:g} ppm", f"{worst * 1e6:.2g} ppm")
                what = f"{name}: Allan deviation from {least:g} s on, largest{found.purpose}"
                found.shape("12", what, texts, (worst * 1e6 < limit_ppm, f"below {limit_ppm:g} ppm"))
    _rates(found, recording)


def _recovered(found: _Found, recording: Recording, pulse: KnownPulse) -> None:
    """What the instrument of figure 12 shows of a pulse whose deviation is known."""
    curve = time_errors(recording).get(f"base against {pulse.name}")
    grid = even_grid(*curve) if curve is not None else None
    if grid is None:
        return
    shown = confident_allan(grid, _CONFIDENCE)
    for tau, value, low, high in zip(shown.tau_s, shown.value, shown.low, shown.high, strict=True):
        if round(float(tau)) in _TAUS_S:
            known = pulse.deviation / math.sqrt(float(tau))
            texts = (f"known: {known:.3g}", f"{value:.3g}, interval {low:.3g} to {high:.3g}")
            what = f"instrument: the Allan deviation of a known pulse, at {tau:.0f} s"
            found.shape("12", what, texts, (bool(low <= known <= high), f"the known one within the {_CONFIDENCE:.0%} interval"))


def _rates(found: _Found, recording: Recording) -> None:
    """Figure 13: how far the mean rate of a stressed phase lies from that of the quiet ones."""
    for name, (t, x) in time_errors(recording).items():
        rates: dict[bool, list[float]] = {}
        for phase in recording.phases:
            inside = (t >= phase.begin_s) & (t < phase.end_s)
            if int(inside.sum()) >= 3:
                rates.setdefault(phase.is_quiet, []).append(float((x[inside][-1] - x[inside][0]) / (t[inside][-1] - t[inside][0])))
        if len(rates) == 2:
            quiet = sum(rates[True]) / len(rates[True])
            most = max(abs(rate - quiet) for rate in rates[False]) * 1e6
            what = f"{name}: rate under stress minus quiet{found.purpose}"
            found.shape("13", what, ("below 1 ppm", f"{most:.2g} ppm"), (most < 1.0, "below 1 ppm"))


def _quiet(recording: Recording, arrangements: Sequence[str]) -> list[dict[str, Any]]:
    quiet = {phase.number for phase in recording.phases if phase.is_quiet}
    first = min(quiet, default=0)
    return [row for row in recording.of("figures") if row["arrangement"] in arrangements and row["phase"] == first]


def _latency(found: _Found, recording: Recording) -> None:
    kernel = _quiet(recording, ["kernel"])
    whole = {_KERNEL[row["counter"]]: row["ticks"]["median"] for row in kernel if _is_whole(row)}
    for name, median in whole.items():
        paper = LATENCIES[f"{name} (FreeBSD kernel interface)"].median
        found.value("14", f"{name}: median latency in the kernel, cycles", (f"{paper:g}", f"{median:.0f}"), median / paper)
    if len(whole) == len(_KERNEL):
        order = [whole[name] for name in _KERNEL.values()]
        found.shape(
            "14", "order of the counters", ("TSC, HPET, ACPI fast, ACPI safe", _listed(order)), (order == sorted(order), "that order")
        )
    paper = LATENCIES["interface alone (Linux)"].median
    for place, cost in interface_alone(kernel):
        name = kernel[place - 1]["counter"]
        found.value("15", f"{name}: interface minus register, cycles", (f"{paper:g}", f"{cost:.0f}"), cost / paper)
    _calls(found, recording)
    _hot(found, recording)


def _is_whole(row: Mapping[str, Any]) -> bool:
    return row["counter"] in _KERNEL and row["access"] == "kernel interface"


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


def _calls(found: _Found, recording: Recording) -> None:
    """Figure 16: an instruction and a system call, each as a single reading."""
    medians = {row["access"]: float(row["ticks"]["median"]) for row in _quiet(recording, ["single"])}
    instruction = next((medians[name] for name in ("lfence;rdtsc", "rdtsc", "isb;mrs") if name in medians), None)
    call = medians.get("ioctl", medians.get("system call"))
    if not instruction or not call:
        return
    texts = (f"{_RATIO_OF_CALLS:.3g}", f"{call / instruction:.3g}: {call:.0f} and {instruction:.0f} cycles")
    found.value("16", "a system call over an instruction, median latency", texts, call / instruction / _RATIO_OF_CALLS)
    paper = LATENCIES["getcounter() (Linux)"].median
    found.cost("16", "a system call, cycles", (f"{paper:g}", f"{call:.0f}"), call / paper)


def _hot(found: _Found, recording: Recording) -> None:
    """Figure 14: under load on the processors every median in the kernel drops, as in the paper."""
    names = {phase.number: phase.name for phase in recording.phases}
    rows = [row for row in recording.of("figures") if row["arrangement"] == "kernel" and _is_whole(row)]
    changes = []
    for row in rows:
        if names.get(row["phase"]) == "cpu":
            quiet = [one for one in rows if one["counter"] == row["counter"] and names.get(one["phase"]) == "quiet"]
            changes += [(_KERNEL[row["counter"]], float(quiet[0]["ticks"]["median"]), float(row["ticks"]["median"]))] if quiet else []
    if changes:
        drops = sum(after < before for _, before, after in changes)
        each = ", ".join(f"{name} {before:.0f} to {after:.0f}" for name, before, after in changes)
        texts = ("all drop (hot caches)", f"{drops} of {len(changes)} drop: {each} cycles")
        found.shape("14", "latencies in the kernel under load on the processors", texts, (drops == len(changes), "every median drops"))


def _clock(found: _Found, recording: Recording) -> None:
    names = {phase.number: phase.name for phase in recording.phases}
    for (stamps, estimator), mine in _kinds(recording).items():
        clocks = f"{stamps}, {estimator}"
        quiet = [row for row in mine if names.get(row["phase"], "quiet") == "quiet"]
        if quiet:
            _by_counter(found, clocks, _last(quiet))
        for load, apart in STRESSED_MEDIANS_S.items():
            medians = [row["median_s"] for row in mine if names.get(row["phase"]) == load]
            if len(medians) > 1:
                width = max(medians) - min(medians)
                texts = (f"at most {time_text(apart)}", time_text(width))
                found.shape("17", f"{clocks}: medians of the counters apart under load ({load})", texts, (width <= apart, texts[0]))


def _kinds(recording: Recording) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The clocks by their stamps and their estimator: the papers' own, and the one that users run."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in recording.of("clock"):
        if row["count"] > 0:
            found.setdefault((row["stamps"], row.get("estimator", "classic")), []).append(row)
    return dict(sorted(found.items()))


def _last(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those of the last phase."""
    return [row for row in rows if row["phase"] == rows[-1]["phase"]]


def _by_counter(found: _Found, clocks: str, rows: Sequence[Mapping[str, Any]]) -> None:
    spreads, medians = [float(row["iqr_s"]) for row in rows], [float(row["median_s"]) for row in rows]
    worst = max(spreads)
    found.cost("17", f"{clocks}: largest IQR of the clocks", (time_text(CLOCK_IQR_S), time_text(worst)), worst / CLOCK_IQR_S)
    if len(rows) > 1:
        ratio = worst / min(spreads)
        texts = ("all about 7 µs", f"{number_text(ratio)} times")
        found.shape("17", f"{clocks}: largest IQR over the smallest, by counter", texts, (ratio <= _ALIKE, f"at most {_ALIKE:g}"))
        width = max(medians) - min(medians)
        texts = (f"within {time_text(CLOCK_MEDIAN_BAND_S)}", time_text(width))
        found.shape("17", f"{clocks}: medians of the counters apart", texts, (width <= CLOCK_MEDIAN_BAND_S, texts[0]))


def _machines(found: _Found, recordings: Sequence[Recording]) -> None:
    """Figure 18: the largest spread of each machine's clocks, of the same stamps and estimator."""
    spreads: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for machine, mine in machines(recordings).items():
        for recording in mine:
            names = {phase.number: phase.name for phase in recording.phases}
            for kind, rows in _kinds(recording).items():
                quiet = [row for row in rows if names.get(row["phase"], "quiet") == "quiet"]
                if quiet:
                    spreads.setdefault(kind, []).append((machine.label, max(float(row["iqr_s"]) for row in _last(quiet))))
    for (stamps, estimator), each in sorted(spreads.items()):
        worst = max(spread for _, spread in each)
        count = len({label for label, _ in each})
        texts = (
            f"below {time_text(_LAPTOP_IQR_S)} on each of three machines",
            f"{count} here: " + "; ".join(f"{label} {time_text(spread)}" for label, spread in each),
        )
        found.shape("18", f"{stamps}, {estimator}: largest IQR by machine", texts, (worst < _LAPTOP_IQR_S, "each below 8 µs"))


def _frequencies(found: _Found, recording: Recording) -> None:
    """Table I: the frequencies as they were measured by the kernel's raw clock, and not as the kernel states them.

    The sizes of the table are not measured: what is shown here of a counter is its cumulative count of 64 bits.
    """
    measured = {name.removeprefix("module:"): hertz for name, hertz in _measured_hertz(recording).items()}
    if "hpet" in measured:
        # Its frequency is the board's own choice, from 10 MHz up (IA-PC HPET specification, section 2.3.4: a period of 100 ns
        # at the most), and is read from its register: 14.318 MHz in most chipsets, 100 MHz in QEMU.
        stated = next(float(one["hertz"]) for one in recording.about["counters"] if one["name"].split()[0] == "module:hpet")
        texts = (f"{_HPET_HERTZ / 1e6:g} MHz", f"{measured['hpet'] / 1e6:.6g} MHz measured; its register: {stated / 1e6:.6g} MHz")
        holds = is_near(measured["hpet"] / stated, _TIMER_FACTOR)
        found.frequency("hpet: frequency", texts, measured["hpet"] / _HPET_HERTZ, (holds, "within 1% of what its register states"))
    if "acpi_pm" in measured:
        texts = (f"{_ACPI_HERTZ / 1e6:g} MHz", f"{measured['acpi_pm'] / 1e6:.6g} MHz measured")
        found.frequency("acpi_pm: frequency", texts, measured["acpi_pm"] / _ACPI_HERTZ)
    cpu = recording.machine.cpu_hertz
    if cpu and "base" in measured:
        texts = (f"the CPU's: {cpu / 1e6:.6g} MHz", f"{measured['base'] / 1e6:.6g} MHz measured")
        found.frequency("TSC: frequency", texts, measured["base"] / cpu)


def _measured_hertz(recording: Recording) -> dict[str, float]:
    """The frequency of each counter by CLOCK_MONOTONIC_RAW; nothing where that was not read."""
    # A name, and how it is read.
    names = [counter["name"].split()[0] for counter in recording.about["counters"]]
    samples = [sample["points"] for sample in recording.of("sample") if len(sample["points"]) == len(names)]
    if _RAW not in names or len(samples) < 2:
        return {}
    first, last = samples[0], samples[-1]
    raw = names.index(_RAW)

    def per_base(number: int) -> float:
        return float((last[number]["value"] - first[number]["value"]) / signed(last[number]["base"] - first[number]["base"]))

    base = 1e9 / per_base(raw)
    return {"base": base, **{name: per_base(number) * base for number, name in enumerate(names) if number != raw}}
