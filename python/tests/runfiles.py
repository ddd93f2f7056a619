"""Synthetic runs whose figures are known in advance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    """Writes one CSV file; NaN becomes an empty cell."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join("" if isinstance(cell, float) and math.isnan(cell) else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n", encoding="utf-8")
    return path


def demo_run(directory: Path) -> Path:
    """Ninety seconds at 100 rows/s: an even spread of errors from -1 to +1 us, and 20 s without the server."""
    t = np.arange(9000) / 100.0
    error = np.resize(np.linspace(-1e-6, 1e-6, 101), t.size)
    away = np.clip(t - 45.0, 0.0, None) * (t < 65.0)
    status = np.where(t < 2.0, "WarmingUp", np.where(away > 1.0, "Holdover", "Synchronised"))
    write_csv(
        directory / "samples.csv",
        {
            "t_s": t.tolist(),
            "error_s": (error + 2e-7 * away).tolist(),
            "bound_s": (2e-5 + 1e-6 * away).tolist(),
            "uncertainty_s": (4e-6 + 3e-7 * away).tolist(),
            "noise_s": (1e-6 + 3e-7 * away).tolist(),
            "status": status.tolist(),
            "rate_error_ppm": (0.02 * np.sin(t / 9.0)).tolist(),
        },
    )
    asked = np.array([s for s in np.arange(0.0, 90.0, 0.25) if not 45.0 <= s < 65.0])
    trips = 4e-5 + 1e-6 * (np.arange(asked.size) % 5)
    write_csv(
        directory / "exchanges.csv",
        {
            "t_s": asked.tolist(),
            "round_trip_s": trips.tolist(),
            "floor_s": np.full(asked.size, 4e-5).tolist(),
            "used": ["true" if k % 7 else "false" for k in range(asked.size)],
        },
    )
    summary = {
        "title": "Demo <veth> & more",
        "conditions": {"poll": "250 ms", "stamps": "kernel"},
        "warm_up_s": 10,
        "figures": [
            {"name": "error IQR", "value": 1.01e-6, "unit": "s", "goal": 1.5e-6, "met": True},
            {"name": "resident memory", "value": 9.1, "unit": "MiB", "goal": 8, "met": False},
            {"name": "counter", "value": "tsc"},
        ],
        "events": [{"t_s": 45, "duration_s": 20, "text": "server cut off"}, {"t_s": 70, "text": "poll 1 s"}],
    }
    (directory / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return directory
