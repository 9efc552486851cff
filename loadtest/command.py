"""The command `ringlog loadtest`: an experiment, all of them, their report."""

from ringlog.loadtest import lab
from ringlog.loadtest.experiment.catalogue import write_report_of
from ringlog.loadtest.experiment.running import OUTPUT, Compare, Output, interruptible
from ringlog.loadtest.spring8.command import app

for _name, _where in lab.EXPERIMENTS.items():
    lab.add(app, _name, _where)
lab.add(app, "all", "ringlog_lab.papers.command:everything")


@app.command()
def report(output: Output = OUTPUT, compare: Compare = None) -> None:
    """Write the report again from the results in its folder."""
    with interruptible():
        print(f"Written: {write_report_of(output, compare)}")


__all__ = ["app"]
