"""To be written."""


class NumpyExportArchive:
    pass
