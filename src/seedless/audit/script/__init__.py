"""Runs of scripts: a command is executed under the recorder, sealed, and executed again."""
