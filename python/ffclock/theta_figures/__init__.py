"""Counterparts of the figures of "Evaluation of Message Delay Correlation in Distributed Systems", live on this machine and simulated.

Run ``python -m ffclock.theta_figures``.
"""
