"""Attacks on run folders, bundles, packed data and study stores, as an outsider makes them.

Whoever attacks has read docs/receipt.md and has a text editor, Python and numpy. Nothing of the
package is imported here but in `server.py`, which is the command line itself. Each attack changes a
copy of an honest victim, runs one command on it, and says which verdicts are acceptable:

    formats.py   canonical JSON, safetensors and npz files, written from their specifications
    forging.py   receipts, trails and checkpoints with new digests
    victims.py   the honest runs, bundles and stores
    attack.py    what an attack is;  server.py, runner.py  how one is made and measured
    catalog.py   all of them; the other files hold one family each

`python -m benchmarks.attacks` writes what each of them came to.
"""
