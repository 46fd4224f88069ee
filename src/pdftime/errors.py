"""The exception tree; catch `PDFTimeError` to catch everything this library raises on purpose.

PDFTimeError
├── ConfigError (ValueError)        a setting that cannot work
├── DataError (ValueError)          series or labels that cannot be used
│   ├── DataTypeError (TypeError)   ... because a cell is not a number
│   └── SeriesFileError             a data file that cannot be read or written
├── ModelFileError (ValueError)     a model file or checkpoint that is broken, foreign or too new
└── TrainingError (RuntimeError)    training could not go on
"""


class PDFTimeError(Exception):
    """Root of every error that this library raises on purpose."""


class ConfigError(PDFTimeError, ValueError):
    """A setting is unknown, out of range or contradicts another."""


class DataError(PDFTimeError, ValueError):
    """Series or labels cannot be used as they came."""


class DataTypeError(DataError, TypeError):
    """A cell is not a number."""


class SeriesFileError(DataError):
    """A data file cannot be read or written; the message names file and line where there is one."""


class ModelFileError(PDFTimeError, ValueError):
    """A model file or checkpoint is broken, foreign, too new, or could not be written."""


class TrainingError(PDFTimeError, RuntimeError):
    """Training cannot go on; the message names the step and the cause."""
