"""A cluster that is this process."""


class Here:
    def submit(self, function, *arguments, pure=None, **options):
        return function(*arguments, **options)

    def map(self, function, *columns, pure=None, **options):
        return [self.submit(function, *arguments, **options) for arguments in zip(*columns)]

    def gather(self, found):
        return found
