"""The users for locust: those of every table, and the transport of their records to locust's master.

Started by `ringlog loadtest`, which passes the load's settings by an environment variable (see load.py).
"""

import gevent
from gevent.event import Event
from locust import events, runners
from locust.env import Environment
from locust.rpc import Message
from locust.runners import LocalRunner, MasterRunner, Runner, WorkerRunner

from ringlog.loadtest.load import LocustLoad
from ringlog.loadtest.users import Counter, let_others_run, users

# Seconds between two deliveries of records, and for the last one.
_DELIVERY = 0.5
_PATIENCE = 70.0

# Seconds of silence after which locust gives up a worker: 3 would be too few on a busy machine.
runners.HEARTBEAT_LIVENESS = 30

load = LocustLoad.from_environment()
counter = Counter()
let_others_run()
globals().update({user.__name__: user for user in users(load, counter)})


@events.init.add_listener
def arrange(environment: Environment, runner: Runner, **_: object) -> None:
    """Sends the records of workers to the master, which writes them.

    Locust's own end of a run does not wait for the workers' last records; so calls end, and the last records
    are delivered, before it begins: at `finish` a worker lets its running calls end, delivers, and sends
    `finished`. LocalRunner is both worker and master.
    """
    if isinstance(runner, WorkerRunner | LocalRunner):
        _work(environment, runner)
    if isinstance(runner, MasterRunner | LocalRunner):
        _collect(environment, runner)


def _work(environment: Environment, runner: WorkerRunner | LocalRunner) -> None:
    def deliver() -> None:
        if records := counter.calls.take():
            runner.send_message("calls", {"records": records})

    def deliver_for_ever() -> None:
        while True:
            gevent.sleep(_DELIVERY)
            deliver()

    def finish(**_: object) -> None:
        counter.close()
        deliver()
        runner.send_message("finished")

    def begin(**_: object) -> None:
        counter.open()

    runner.register_message("finish", finish, concurrent=True)
    environment.events.test_start.add_listener(begin)
    gevent.spawn(deliver_for_ever)


def _collect(environment: Environment, runner: MasterRunner | LocalRunner) -> None:
    file = load.calls.open("ab", buffering=0) if load.calls else None
    workers = 0
    all_finished = Event()

    def write(msg: Message, **_: object) -> None:
        if file is not None:
            file.write(msg.data["records"])

    def finished(**_: object) -> None:
        nonlocal workers
        workers -= 1
        if workers <= 0:
            all_finished.set()

    def finish(**_: object) -> None:
        nonlocal workers
        workers = runner.worker_count
        all_finished.clear()
        runner.send_message("finish")
        if workers:
            all_finished.wait(_PATIENCE)

    runner.register_message("calls", write)
    runner.register_message("finished", finished)
    environment.events.test_stopping.add_listener(finish)
