"""Where the runs of a sweep are made: in processes of this machine, or on the workers of a Dask cluster."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Protocol

from .jobs import Job, fingerprint, run_job
from .program import ProgramError

# This many runs are handed out ahead; the others wait here, whatever the size of the sweep.
_AHEAD: Final = 8

Outcome = tuple[Job, dict[str, Any] | Exception]
"""A run with its result, or the reason why there is none."""

PATIENCE: Final = "10s"
"""How long a scheduler may take to answer."""

NO_CLUSTER: Final = """sweeps over a cluster need dask.distributed ({name} is missing)
install it with: pip install 'ffclock[cluster]', or pip install -r python/requirements.txt in a checkout"""


class EngineError(RuntimeError):
    """The cluster cannot be used: the message says why and what to do."""


class Engine(Protocol):
    """Makes runs."""

    def program(self) -> str:
        """The fingerprint of the command that makes them."""

    def outcomes(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """The outcomes, in the order in which they arrive."""


class Processes:
    """As many processes of the command at a time as were asked for."""

    def __init__(self, ffclock_lab: str | None, at_once: int) -> None:
        self._ffclock_lab = ffclock_lab
        self._at_once = at_once

    def program(self) -> str:
        """The fingerprint of the command of this machine."""
        return fingerprint(self._ffclock_lab)

    def outcomes(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Each run is a process of its own; the threads here only wait for them."""
        left = iter(jobs)
        with ThreadPoolExecutor(self._at_once) as pool:
            waiting: dict[Future[dict[str, Any]], Job] = {}
            while True:
                for job in itertools.islice(left, self._at_once * _AHEAD - len(waiting)):
                    waiting[pool.submit(run_job, job, self._ffclock_lab)] = job
                if not waiting:
                    return
                try:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        error = future.exception()
                        yield waiting.pop(future), error if isinstance(error, Exception) else future.result()
                except BaseException:
                    # The remaining results are not wanted.
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise


class Cluster:
    """The workers of a Dask cluster. Each needs the package ``ffclock`` and the command, at the same path or on its PATH."""

    def __init__(self, client: Any, ffclock_lab: str | None) -> None:
        self._client = client
        self._ffclock_lab = ffclock_lab

    def program(self) -> str:
        """The fingerprint of the command of all workers; EngineError if they differ or have none."""
        try:
            found = self._client.run(fingerprint, self._ffclock_lab)
        except (ProgramError, ImportError) as error:
            raise EngineError(f"a worker of the cluster cannot simulate: {error}") from error
        if not found:
            raise EngineError("the cluster has no workers; start some with: dask worker SCHEDULER-ADDRESS")
        builds = sorted(set(found.values()))
        if len(builds) > 1:
            raise EngineError(f"the workers have different builds of the command ffclock-lab ({', '.join(builds)}); give all of them one")
        return str(builds[0])

    def outcomes(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """The scheduler gives the runs of a lost worker to another one."""
        left = iter(jobs)
        ahead = max(sum(self._client.nthreads().values()), 1) * _AHEAD
        jobs_of: dict[str, Job] = {}
        done = import_module("distributed").as_completed([])

        def hand_out(count: int) -> None:
            for job in itertools.islice(left, count):
                future = self._client.submit(run_job, job, self._ffclock_lab, key=f"ffclock-{job.digest}", pure=False)
                jobs_of[future.key] = job
                done.add(future)

        hand_out(ahead)
        for future in done:
            job = jobs_of.pop(future.key)
            error = future.exception()
            yield job, error if error is not None else future.result()
            hand_out(1)


@contextmanager
def cluster(address: str, ffclock_lab: str | None) -> Iterator[Cluster]:
    """Connects to the scheduler at ``address``; EngineError if that fails."""
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise EngineError(NO_CLUSTER.format(name=error.name)) from error
    try:
        client = distributed.Client(address, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(f"{address}: no Dask scheduler answers there ({type(error).__name__}: {error})") from error
    try:
        yield Cluster(client, ffclock_lab)
    finally:
        client.close()
