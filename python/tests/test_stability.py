"""Stability statistics against published values, and what is made of uneven, long and short input."""

from __future__ import annotations

import numpy as np
import pytest

from ffclock import stability
from ffclock.stability import allan, even_grid, modified_allan, mtie, time_deviation

# The nine frequencies of NBS Monograph 140, annex 8.E, and their deviations as NIST SP 1065 (section 12.4, table 31) gives them.
NBS14 = [892.0, 809.0, 823.0, 798.0, 671.0, 644.0, 883.0, 903.0, 677.0]
PHASE = np.concatenate(([0.0], np.cumsum(NBS14)))


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [(allan, [91.22945, 85.95287]), (modified_allan, [91.22945, 74.78849]), (time_deviation, [52.67135, 86.35831])],
)
def test_deviations_are_those_of_the_handbook(statistic: object, expected: list[float]) -> None:
    grid = even_grid(np.arange(10.0), PHASE)
    assert grid is not None
    assert callable(statistic)
    found = statistic(grid)
    assert found.tau_s.tolist() == [1.0, 2.0]
    assert found.value == pytest.approx(expected, rel=1e-6)
    assert (found.low < found.value).all()
    assert (found.high > found.value).all()


def test_confidence_holds_the_true_deviation_of_white_frequency_noise() -> None:
    phase = np.cumsum(np.random.default_rng(4).standard_normal(20_000)) * 1e-9
    grid = even_grid(np.arange(20_000.0), phase)
    assert grid is not None
    found = allan(grid)
    true = 1e-9 / np.sqrt(found.tau_s)
    inside = np.mean((found.low <= true) & (true <= found.high))
    assert 0.3 < inside <= 1.0
    assert found.value == pytest.approx(true, rel=0.25)
    # The fewer averages, the wider.
    widths = (found.high - found.low) / found.value
    assert widths[-1] > 3 * widths[0]


def test_intervals_hold_the_true_deviation_as_often_as_they_say() -> None:
    """Of 120 realisations of white frequency noise; the margins are three standard deviations of such a count."""
    noise = np.random.default_rng(7).standard_normal((120, 1025))
    noise[:, 0] = 0.0
    taus = (1.0, 16.0, 64.0)
    for confidence, margin in ((0.95, 0.06), (stability.ONE_SIGMA, 0.13)):
        inside = np.zeros(len(taus))
        for phase in np.cumsum(noise, axis=1):
            grid = even_grid(np.arange(1025.0), phase)
            assert grid is not None
            found = allan(grid, confidence)
            places = [found.tau_s.tolist().index(tau) for tau in taus]
            true = 1.0 / np.sqrt(taus)
            inside += (found.low[places] <= true) & (true <= found.high[places])
        assert inside / len(noise) == pytest.approx([confidence] * len(taus), abs=margin)


def test_mtie_is_the_largest_peak_to_peak_of_any_window() -> None:
    values = np.random.default_rng(5).standard_normal(900)
    grid = even_grid(np.arange(900.0), values)
    assert grid is not None
    found = mtie(grid)
    for tau, value in zip(found.tau_s, found.value, strict=True):
        width = int(tau) + 1
        assert value == pytest.approx(max(np.ptp(values[begin : begin + width]) for begin in range(900 - width + 1)))


def test_long_mtie_is_thinned_and_does_not_jump_where_that_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.cumsum(np.random.default_rng(6).standard_normal(40_000))
    grid = even_grid(np.arange(40_000.0), values)
    assert grid is not None
    whole = mtie(grid)
    monkeypatch.setattr(stability, "MTIE_POINTS_MAX", 4000)
    thinned = mtie(grid)
    assert np.all(np.diff(thinned.tau_s) > 0)
    assert thinned.value == pytest.approx(np.interp(thinned.tau_s, whole.tau_s, whole.value), rel=0.2)


def test_uneven_times_are_interpolated_and_gaps_are_reported() -> None:
    rng = np.random.default_rng(7)
    times = np.cumsum(rng.uniform(0.5, 1.5, 4000))
    times[2000:] += 1000.0
    grid = even_grid(times, 3e-6 * times)
    assert grid is not None
    assert grid.step_s == pytest.approx(1.0, rel=0.05)
    assert grid.values - grid.values[0] == pytest.approx(3e-6 * grid.step_s * np.arange(grid.values.size), abs=1e-12)
    assert grid.bridged == pytest.approx(0.2, abs=0.01)


def test_long_input_keeps_its_own_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "POINTS_MAX", 1000)
    values = np.random.default_rng(8).standard_normal(5000)
    grid = even_grid(np.arange(5000.0), values)
    assert grid is not None
    assert grid.step_s == 5.0
    assert grid.values.tolist() == values[::5].tolist()


@pytest.mark.parametrize("values", [np.full(50, np.nan), np.zeros(3), np.array([])])
def test_too_little_is_nothing(values: np.ndarray) -> None:
    assert even_grid(np.arange(float(values.size)), values) is None
    assert even_grid(np.zeros(50), np.ones(50)) is None


def test_masks_have_the_limits_of_the_recommendations() -> None:
    sync_ethernet, prtc_a, prtc_b = (mask.limit for mask in stability.MTIE_MASKS)
    assert [sync_ethernet(tau) for tau in (1, 10, 100)] == pytest.approx([250e-9, 1e-6, 2e-6])
    assert sync_ethernet(1e5) == pytest.approx(433e-9 * 10 + 1e-6)
    assert [prtc_a(1000), prtc_b(1000)] == pytest.approx([100e-9, 40e-9])
    sync_ethernet, prtc_a, prtc_b = (mask.limit for mask in stability.TDEV_MASKS)
    assert [sync_ethernet(tau) for tau in (1, 50, 10_000)] == pytest.approx([12e-9, 35e-9, 181e-9])
    assert [prtc_a(1), prtc_a(5000), prtc_b(5000)] == pytest.approx([3e-9, 30e-9, 5e-9])
