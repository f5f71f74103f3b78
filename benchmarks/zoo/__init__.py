"""Networks that nobody here wrote: which of them can be initialized, converted, made portable?"""
