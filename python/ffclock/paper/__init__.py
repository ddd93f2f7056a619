"""The simulated counterparts of the figures of "The Case for Feed-Forward Clock Synchronization" (Ridoux, Veitch, Broomhead).

``python -m ffclock.paper`` runs the worlds of each figure with the command ``ffclock-lab``, draws them, compares what was found with what
the paper reports, and writes PNG files and one page. Every figure names its scenario, its seed and the command that runs it.
"""
