"""The compiled reader against pages written by an independent implementation of docs/page.md."""

from __future__ import annotations

import inspect
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest
from pagefile import (
    HOLDOVER,
    SECOND,
    UNSYNCHRONISED,
    WARMING_UP,
    Estimate,
    counter_now,
    overwrite,
    page_bytes,
    page_words,
    write_page,
)

import ffclock

STUB = Path(ffclock.__file__).with_name("_ffclock.pyi")
CPU_COUNTER, FOREIGN_COUNTER = (3, 1) if os.uname().machine == "aarch64" else (1, 3)


@pytest.fixture(name="page")
def _page(tmp_path: Path) -> Path:
    return write_page(tmp_path / "page", Estimate.present())


def test_now_agrees_with_the_page_and_the_system(page: Path) -> None:
    before = time.time_ns()
    reading = ffclock.Clock.open(page).now()
    after = time.time_ns()
    # The page was made from the system's clock, which may be slewed by 500 ppm in between.
    assert before - 100_000 <= reading.utc_ns <= after + 100_000
    assert reading.tai_ns - reading.utc_ns == 37 * SECOND
    assert reading.status == "synchronised"
    assert 20_000 < reading.bound_ns < 1_000_000
    assert 1_000 < reading.uncertainty_ns < reading.bound_ns
    assert reading.noise_ns == reading.uncertainty_ns, "an earlier writer states nothing else"
    assert reading.earliest_ns == reading.utc_ns - reading.bound_ns
    assert reading.latest_ns == reading.utc_ns + reading.bound_ns


def test_time_of_a_stamp_is_exact(tmp_path: Path) -> None:
    clock = ffclock.Clock.open(write_page(tmp_path / "page", Estimate.present()))
    stamp = clock.stamp()
    period = Fraction(1_000_000_040, 10**18)
    reference = stamp.raw - 1234 * SECOND - 567
    tai_ns = 1_900_000_000_250_000_000
    estimate = Estimate(reference, tai_ns, period=period, bound_ns=20_000, bound_growth=Fraction(1, 10**6))
    write_page(tmp_path / "page", estimate, sequence=4)
    reading = clock.at(stamp)
    truth = tai_ns + (stamp.raw - reference) * period * SECOND
    assert abs(reading.tai_ns - truth) <= 1
    assert reading.utc_ns == reading.tai_ns - 37 * SECOND
    bound = 20_000 + 1_234_000_000_567 / 10**6
    assert bound <= reading.bound_ns <= bound * 1.0001 + 3


def test_the_strict_bound_stands_beside_the_other(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    stamp = clock.stamp()
    assert clock.at(stamp).bound_strict_ns == 2**63 - 1, "a writer of an earlier version does not say it"
    reference = stamp.raw - 1000 * SECOND
    estimate = Estimate(reference, 1_900_000_000 * SECOND, bound_ns=20_000, bound_strict_ns=700_000)
    write_page(page, estimate, sequence=4)
    reading = clock.at(stamp)
    assert 1_020_000 <= reading.bound_ns <= 1_020_200
    assert 1_700_000 <= reading.bound_strict_ns <= 1_700_200
    # 1000 s at 1e-7.
    assert 100_400 <= reading.noise_ns <= 100_402
    assert 101_000 <= reading.uncertainty_ns <= 101_002


def test_a_stamp_older_than_the_estimate_is_converted_by_it(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    stamp = clock.stamp()
    later = Estimate(stamp.raw + 100 * SECOND, 1_900_000_100 * SECOND)
    write_page(page, later, sequence=4)
    reading = clock.at(stamp)
    assert abs(reading.tai_ns - 1_900_000_000 * SECOND) <= 1
    assert reading.bound_ns >= 20_000 + 100_000


def test_stamps_are_the_raw_counter(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    before, stamp, after = counter_now(), clock.stamp(), counter_now()
    assert before <= stamp.raw <= after
    assert stamp.epoch == 7
    assert stamp == stamp  # noqa: PLR0124  that is the question
    assert stamp != clock.stamp()
    assert stamp != stamp.raw
    assert len({stamp, stamp, clock.stamp()}) == 2


def test_a_stamp_can_be_written_down(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    stamp = clock.stamp()
    again = (ffclock.Stamp(stamp.raw, stamp.epoch), ffclock.Stamp(raw=stamp.raw, epoch=stamp.epoch), pickle.loads(pickle.dumps(stamp)))
    assert all(copy == stamp and clock.at(copy).utc_ns == clock.at(stamp).utc_ns for copy in again)
    assert repr(stamp) == f"Stamp(raw={stamp.raw}, epoch=7)"


def test_intervals_follow_the_difference_clock(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    first = clock.stamp()
    time.sleep(0.02)
    second = clock.stamp()
    slow = Fraction(1_000_100_000, 10**18)
    write_page(page, Estimate.present(difference_period=slow, difference_bound=Fraction(1, 10**6)), sequence=4)
    interval = clock.elapsed(first, second)
    truth = (second.raw - first.raw) * slow
    assert abs(interval.ns - truth * SECOND) <= 1
    assert interval.seconds == pytest.approx(float(truth), rel=1e-12)
    assert truth * SECOND / 10**6 <= interval.bound_ns <= truth * SECOND / 10**6 + 3
    assert interval.status == "synchronised"
    assert clock.elapsed(second, first).ns == pytest.approx(-interval.ns, abs=1)
    assert clock.elapsed(first, first).ns == 0


def test_a_bound_covers_the_rounding_to_nanoseconds(page: Path) -> None:
    """A bound of nothing cannot stay nothing when the time is rounded."""
    clock = ffclock.Clock.open(page)
    stamp = clock.stamp()
    period = Fraction(999_999_999_3, 10**19)
    nothing = Fraction(0)
    exact = Estimate(stamp.raw - 1, 1_900_000_000 * SECOND, period, 0, nothing, 0, nothing)
    write_page(page, exact, sequence=4)
    reading = clock.at(stamp)
    truth = 1_900_000_000 * SECOND + period * SECOND
    assert abs(reading.tai_ns - truth) <= reading.bound_ns <= 2


@pytest.mark.parametrize(("code", "word"), [(WARMING_UP, "warming-up"), (HOLDOVER, "holdover")])
def test_status_is_given_in_words(tmp_path: Path, code: int, word: str) -> None:
    clock = ffclock.Clock.open(write_page(tmp_path / "page", Estimate.present(status=code)))
    assert clock.status == word
    assert clock.now().status == word
    assert f"status='{word}'" in repr(clock.now())


def test_after_its_date_a_page_is_not_believed(tmp_path: Path) -> None:
    """The daemon died: no error, but the status says so and the bound has grown."""
    old = Estimate.present()
    old = Estimate(old.counter - 1000 * SECOND, old.tai_ns - 1000 * SECOND, valid_ticks=30 * SECOND)
    clock = ffclock.Clock.open(write_page(tmp_path / "page", old))
    reading = clock.now()
    assert clock.status == reading.status == "unsynchronised"
    assert reading.bound_ns > 1_000_000
    assert abs(reading.utc_ns - time.time_ns()) < SECOND


def test_without_an_estimate_there_is_no_time(tmp_path: Path) -> None:
    clock = ffclock.Clock.open(write_page(tmp_path / "page", Estimate.present()))
    stamp = clock.stamp()
    write_page(tmp_path / "page", Estimate.present(status=UNSYNCHRONISED), sequence=4)
    assert clock.status == "unsynchronised"
    for call in (clock.now, lambda: clock.at(stamp), lambda: clock.elapsed(stamp, stamp)):
        with pytest.raises(ffclock.UnsynchronisedError, match="no estimate"):
            call()


def test_stamps_of_another_epoch_are_refused(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    stamp = clock.stamp()
    write_page(page, Estimate.present(epoch=8, epoch_begin=counter_now()), sequence=4)
    fresh = clock.stamp()
    with pytest.raises(ffclock.EpochError):
        clock.at(stamp)
    with pytest.raises(ffclock.EpochError):
        clock.elapsed(stamp, fresh)
    assert clock.at(fresh).status == "synchronised"


def test_an_empty_page_becomes_readable(tmp_path: Path) -> None:
    path = write_page(tmp_path / "page", None)
    clock = ffclock.Clock.open(path)
    early = clock.stamp()
    with pytest.raises(ffclock.UnsynchronisedError, match="no clock has been published here yet"):
        clock.now()
    assert clock.status == "unsynchronised"
    write_page(path, Estimate.present())
    assert clock.now().status == "synchronised"
    with pytest.raises(ffclock.EpochError):
        clock.at(early)


def test_a_page_about_a_counter_that_is_not_here_is_named(tmp_path: Path) -> None:
    clock = ffclock.Clock.open(write_page(tmp_path / "page", Estimate.present(counter_id=FOREIGN_COUNTER)))
    with pytest.raises(ffclock.PageError, match="the page is about the counter"):
        clock.now()


def test_the_page_is_found_by_its_variable(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFCLOCK_PAGE", str(page))
    assert str(page) in repr(ffclock.Clock.open())


def test_bad_pages_are_named(tmp_path: Path) -> None:
    path = tmp_path / "page"
    with pytest.raises(ffclock.PageError, match=re.escape(str(path))):
        ffclock.Clock.open(path)
    good = page_words(Estimate.present())
    for data, complaint in (
        (b"", "no clock has been published here yet"),
        (bytes(4096), "no clock has been published here yet"),
        (page_bytes(good)[:4000], "bytes"),
        (b"x" * 4096, "not a clock page"),
        (page_bytes(good | {1: 9}), "version 9"),
        (page_bytes(good | {5: good[5] ^ 4}), "damaged"),
        (page_bytes(page_words(Estimate.present(), boot=1)), "before the machine was last started"),
    ):
        path.write_bytes(data)
        with pytest.raises(ffclock.PageError, match=complaint):
            ffclock.Clock.open(path)


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    """Any single bit of a slot: an error, never a wrong number."""
    path = write_page(tmp_path / "page", Estimate.present())
    clock = ffclock.Clock.open(path)
    stamp = clock.stamp()
    whole = clock.at(stamp)
    sound = page_words(Estimate.present())
    begin = 64  # sequence 2 lives in slot 1
    for place in range(24):
        for bit in range(0, 64, 5):
            overwrite(path, sound | {begin + place: sound[begin + place] ^ (1 << bit)})
            try:
                reading = clock.at(stamp)
            except ffclock.PageError:
                continue
            assert abs(reading.utc_ns - whole.utc_ns) < 1_000_000, (place, bit)
            assert place >= 13, "a word that an ordinary reading uses"


def test_a_short_interval_asks_for_the_check_words_of_its_own_words_only(page: Path) -> None:
    estimate = Estimate.present(difference_uncertainty=Fraction(1, 10**8), short=3600 * SECOND)
    sound = page_words(estimate)
    overwrite(page, sound)
    clock = ffclock.Clock.open(page)
    first, second = clock.stamp(), clock.stamp()
    whole = clock.elapsed(first, second).ns
    for place in range(1, 32):
        overwrite(page, sound | {64 + place: sound[64 + place] ^ 1 << 20})
        if place in {1, 11, 13, 14, 15, 16, 17, 29, 30, 31}:
            with pytest.raises(ffclock.PageError):
                clock.elapsed(first, second)
        else:
            assert clock.elapsed(first, second).ns == whole, place


def test_wait_returns_at_once_when_the_bound_is_good(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    assert clock.wait_until(0.001, 30.0).bound_ns <= 1_000_000
    assert clock.wait_until(bound=0.001, timeout=0.0).bound_ns <= 1_000_000


def test_wait_ends_when_time_is_up(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    begin = time.monotonic()
    with pytest.raises(ffclock.WaitTimeoutError, match="bound") as caught:
        clock.wait_until(bound=1e-6, timeout=0.15)
    assert time.monotonic() - begin >= 0.15
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, ffclock.FfclockError)


def test_wait_ends_when_the_page_is_damaged_behind_its_back(tmp_path: Path) -> None:
    """The plain way to the time does not look at what is damaged here; a reading of this package does."""
    path = write_page(tmp_path / "page", Estimate.present(counter_id=CPU_COUNTER))
    clock = ffclock.Clock.open(path)
    sound = page_words(Estimate.present(counter_id=CPU_COUNTER, counter=clock.stamp().raw))
    overwrite(path, sound)
    assert clock.status == "synchronised"
    overwrite(path, sound | {64 + 20: sound[64 + 20] ^ 1})
    with pytest.raises(ffclock.WaitTimeoutError, match="check sum"):
        clock.wait_until(bound=0.01, timeout=0.15)


def test_wait_lets_other_threads_publish(tmp_path: Path) -> None:
    """The thread that makes the page better can only run if the waiting one has let go of the interpreter."""
    path = write_page(tmp_path / "page", Estimate.present(bound_ns=50_000_000))
    clock = ffclock.Clock.open(path)
    timer = threading.Timer(0.1, lambda: write_page(path, Estimate.present(), sequence=4))
    timer.start()
    assert clock.wait_until(bound=0.001, timeout=30.0).bound_ns <= 1_000_000
    timer.join(timeout=30)


@pytest.mark.parametrize(("bound", "timeout"), [(-1.0, None), (float("nan"), None), (1.0, -1.0), (1.0, float("nan"))])
def test_wait_refuses_what_makes_no_sense(page: Path, bound: float, timeout: float | None) -> None:
    with pytest.raises(ValueError, match="seconds"):
        ffclock.Clock.open(page).wait_until(bound, timeout)


def test_wait_can_be_interrupted(page: Path) -> None:
    # Without a timeout of its own a child that is deaf to the interrupt would outlive the test.
    script = f"import ffclock; c = ffclock.Clock.open({str(page)!r}); print('waiting', flush=True); c.wait_until(1e-9, 20.0)"
    # Not from the directory of the sources, where the compiled part need not be.
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=page.parent) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    assert "KeyboardInterrupt" in err


def test_after_a_commit_wait_every_time_is_certainly_later(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    event = clock.now()
    assert event.earliest_tai_ns == event.tai_ns - event.bound_ns
    assert event.latest_tai_ns == event.tai_ns + event.bound_ns
    passed = clock.wait_certainly_after(event.latest_tai_ns, timeout=30.0)
    assert passed.earliest_tai_ns > event.latest_tai_ns
    assert ffclock.certainly_before(event, passed)
    assert not ffclock.certainly_before(passed, event)
    assert not ffclock.certainly_before(event, event)


def test_a_moment_that_does_not_pass_in_time(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    with pytest.raises(ffclock.WaitTimeoutError, match="certainty"):
        clock.wait_certainly_after(clock.now().tai_ns + SECOND * 3600, timeout=0.05)
    with pytest.raises(ValueError, match="seconds"):
        clock.wait_certainly_after(0, timeout=-1.0)


def test_without_a_time_no_order_is_certain(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    event = clock.now()
    write_page(page, Estimate.present(valid_ticks=0), sequence=4)
    time.sleep(0.001)
    later = clock.now()
    assert (later.earliest_ns, later.latest_ns) == (later.earliest_tai_ns, later.latest_tai_ns) == (-(2**63), 2**63 - 1)
    assert not ffclock.certainly_before(event, later)
    with pytest.raises(ffclock.WaitTimeoutError, match="unsynchronised"):
        clock.wait_certainly_after(event.latest_tai_ns, timeout=0.05)


def test_one_clock_serves_many_threads(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    times: list[list[int]] = [[] for _ in range(4)]

    def read(into: list[int]) -> None:
        into += [clock.now().utc_ns for _ in range(2000)]

    threads = [threading.Thread(target=read, args=(into,), daemon=True) for into in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert all(into == sorted(into) and len(into) == 2000 for into in times)


def test_values_cannot_be_made_or_changed(page: Path) -> None:
    clock = ffclock.Clock.open(page)
    for kind in (ffclock.Clock, ffclock.Reading, ffclock.Stamp, ffclock.Interval):
        with pytest.raises(TypeError):
            kind()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        clock.now().utc_ns = 0  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["Clock", "Reading", "Stamp", "Interval"])
def test_stub_and_compiled_class_have_the_same_members(kind: str) -> None:
    body = re.search(rf"^class {kind}:\n(.*?)(?=^@final|\Z)", STUB.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert body is not None
    promised = set(re.findall(r"^    def (\w+)", body[1], re.MULTILINE))
    compiled = getattr(ffclock, kind)
    assert {name for name in promised if name.startswith("__")} <= set(vars(compiled))
    public = {name for name in vars(compiled) if not name.startswith("_")}
    assert public == {name for name in promised if not name.startswith("_")}
    assert all(inspect.getdoc(getattr(compiled, name)) for name in public)


def test_every_promised_name_is_there() -> None:
    for name in ffclock.__all__:
        assert getattr(ffclock, name) is not None
    assert set(ffclock.__all__) <= set(dir(ffclock))
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = ffclock.nothing_of_the_kind
