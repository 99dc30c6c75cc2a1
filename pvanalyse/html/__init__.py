"""A report as one HTML page that needs nothing else: no network, no server, no other file.

``payload`` says what is in a page, a section each in ``sections``; ``pack`` puts it into few bytes; ``page`` puts it
together with the program in ``assets``, which draws it. How to add a view is said at the top of
``assets/core/app.js``.
"""
