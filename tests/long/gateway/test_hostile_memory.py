"""long: twenty sessions of a reader's login use all their permitted memory for ten minutes."""

from pathlib import Path

import pytest
from hostile_sessions import attack, put_row

from servers import add_logins, serving

MiB = 2**20


@pytest.mark.timeout(1200)
def test_twenty_hostile_sessions(data: Path) -> None:
    with serving(data, prepared=False) as server:
        add_logins(server.dsn)
        seen = attack(server, sessions=20, seconds=600, put=put_row)
        print(f"gateway {seen.most_of_gateway // MiB} MiB, a backend {seen.most_of_a_backend // MiB} MiB")
        print(f"{len(seen.latencies)} puts, the longest {max(seen.latencies):.3f} s; answers {seen.numbers}")
        assert seen.failed == []
        assert seen.numbers[701] > 100
        assert seen.most_of_gateway < 600 * MiB
        assert max(seen.latencies) < 0.25
        assert server.process.poll() is None
