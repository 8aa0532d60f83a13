"""An entry that is removed and written again with the same text is another one."""

from tests.builders import held, name, pod
from tests.unit.extender.test_cleaner import OVER, Tidying, patched
from tests.unit.k8s.clocks import worked_off
from tests.unit.k8s.fakes import ScriptedClient


async def test_an_entry_that_was_written_again_while_etcd_was_asked_stays() -> None:
    """Its text is the same, so the API server would carry the edit out."""
    spec = {key: value for key, value in OVER.items() if key != "expiresAt"} | {"ttl": 0}
    client = ScriptedClient({})
    tidying = Tidying(client, other=OVER, web=spec)
    tidying.state.is_complete = True
    tidying.state.pod_seen(pod("a", node="worker-1", cpu="1"))
    calls: list[bool] = []

    async def may_write() -> bool:
        if not calls:
            tidying.state.pod_gone(name("a"))
            tidying.put(other=OVER)
            tidying.put(other=OVER, web=spec)
        calls.append(True)
        return True

    await worked_off(tidying.cleaner.run(tidying.store, may_write), tidying.cleaner.queue)
    assert patched(client) == ["other"]
    assert held(tidying.state, "worker-1") == 1000
