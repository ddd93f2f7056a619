"""What D. Albeseder, "Evaluation of Message Delay Correlation in Distributed Systems", reports in numbers.

Figures 3, 4, 6, 7 and 8 are curves and histograms without printed values; what the text says of them is here.
"""

from __future__ import annotations

from typing import Final

LEVELS: Final = (0, 10, 30, 50, 70, 90)
"""Loads of the table of figure 5 [per cent]."""

OMEGA: Final = {
    ("network", 4): (2.72, 7.05, 8.60, 8.78, 4.81, 8.22),
    ("network", 7): (4.52, 8.60, 9.78, 8.47, 8.91, 5.23),
    ("processor", 4): (2.72, 3.74, 4.29, 5.11, 6.97, 18.47),
    ("processor", 7): (4.52, 4.43, 4.74, 5.45, 6.56, 11.44),
    ("both", 4): (2.72, 7.98, 7.97, 10.15, 5.71, 10.85),
    ("both", 7): (4.52, 8.67, 10.94, 7.88, 5.98, 8.66),
}
"""Largest Omega of five runs of 30 s by kind of load and n, at :data:`LEVELS`, D = 1 ms (figure 5)."""

OMEGA_WITHOUT_DELAY: Final = {4: 16.38, 7: 21.49}
"""Omega without load for D = 0, by n (section 6.2)."""

OMEGA_NORMAL: Final = 1800.0
"""Omega without real-time priorities exceeds this in some cases (section 6.2)."""

OMEGA_REAL_TIME: Final = 12.0
"""With them, for D of 100 us and more, it stays below this but at very high processor load (section 6.2)."""

RAMP_G_R: Final = {"network": 1.4, "processor": 3.6}
"""g_r exceeds this while the load rises and falls (section 6.3)."""

DELAY_MIN_S: Final = 23e-6
"""tau- "for the most cases" (section 6.1)."""

AT_MOST_ONE: Final = {0: 0.33, 70: 0.31}
"""Share of switches at which the ratio is 1, without load and at 70 % combined load (section 6.5)."""
