"""Figures of "The Case for Feed-Forward Clock Synchronization" as running daemons draw them, with verdicts.

``python -m ffclock.live_figures`` (tools/figures-live) runs short forms of the plans of ``ffclock-lab live``.
"""
