"""How far a download is: by files, or by bytes where there is one file."""

from seedless.core.progress import Progress


class DownloadProgress(Progress):
    """Counts files and bytes, from several threads."""

    def __init__(self, title: str, files: int, *, shown: bool = True) -> None:
        self._files, self._finished, self._bytes = files, 0, 0
        if files == 1:
            super().__init__(title, None, "MB", done=0.0, shown=shown)
        else:
            super().__init__(title, files, "files", shown=shown)

    def expect(self, length: int | None) -> None:
        """Set how many bytes the file in transfer has; used where there is one file."""
        if self._files == 1 and length is not None:
            self.total = length / 1e6

    def add(self, count: int) -> None:
        """Count bytes; a negative number where a transfer starts again."""
        with self._lock:
            self._bytes += count
            self._show()

    def finish_file(self) -> None:
        """Count one file as done."""
        with self._lock:
            self._finished += 1
            self._show()

    def _show(self) -> None:
        megabytes = self._bytes / 1e6
        if self._files == 1:
            self.update(megabytes)
        else:
            self.update(self._finished, f"{megabytes:.1f} MB")
