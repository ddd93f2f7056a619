"""One table of every figure and table of the papers: what it shows here, beside what the paper has, with a verdict that can fail.

The tools of the figures leave their verdicts as ``verdicts.json``; ``python -m ffclock.evidence`` (tools/evidence) collects them.
"""
