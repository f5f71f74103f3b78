"""Train, stop and resume within a test, and read what the recorder said about it."""

import warnings


def stop_and_resume(train, folder, *, save, **settings):
    """Train two steps past a checkpoint, then again from it to the end, into one trail.

    Return what the recorder warned of: the steps that were trained twice and differ.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(folder, save=save, stop=save + 2, **settings)
        train(folder, save=save, resume=True, **settings)
    messages = [str(warning.message) for warning in caught]
    return [message for message in messages if "differs from what" in message]
