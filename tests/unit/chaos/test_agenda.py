import random
import threading

from hack.chaos.agenda import Agenda


def test_what_would_go_on_for_ever_ends_when_all_does() -> None:
    over = threading.Event()
    agenda = Agenda(random.Random(0), times=1, seconds=0.0, over=over)
    looks = 0

    def look_again() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            over.set()
        agenda.after(0.0, 0.0, look_again)

    def begin() -> bool:
        look_again()
        return True

    agenda.work(begin, threading.Event())
    assert looks == 3
