"""hwcheck: is this GPU node fit for production, why not, and what makes it so?"""

__version__ = "0.1.0"
