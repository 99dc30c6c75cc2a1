"""What a page holds of a report: a function for each section, from analyses to packed values."""
