"""Plans of studies by name, as the command line makes them."""

from seedless.studies.catalog import open_study


def plan(name, options):
    """Return the plan of a study."""
    return open_study(name).plan(options)
