"""A fault simulation of the whole: real processes on one file, killed and interrupted at random, against a journal.

`python -m tests.whole --seconds 3600 --seed 1` runs it for as long as one likes; a minute of it is a test.

- `models`, `plain`: what is stored; `subjects`: what workers do with it; `worker`: a process that does so.
- `journal`: what each worker was told, and what may be there after it.
- `clocked`: a process whose clock jumps. `older`: an adjoin that knows format version 1 only.
- `driver`: starts, kills, interrupts and starts again. `judge`: compares what is left with the journals.
"""
