# Runs inside a sandbox with egress, in front of the shim: whoever connects to the loopback device is connected to the
# socket of the proxy. One thread, both directions of every connection, no more than one chunk held for each.
def open_relay():
    import os, selectors, socket, threading

    chunk = 1 << 16
    listener = socket.create_server(("127.0.0.1", 3128), backlog=64)
    listener.setblocking(False)
    path = os.environ["AGON_EGRESS_SOCKET"]

    class Half:
        def __init__(self, source):
            self.source, self.other, self.held, self.ended, self.told = source, None, b"", False, False

    def run():
        chosen = selectors.DefaultSelector()
        chosen.register(listener, selectors.EVENT_READ)

        def close(half):
            for each in (half, half.other):
                try:
                    chosen.unregister(each.source)
                except (KeyError, ValueError):
                    pass
                each.source.close()

        # Read while nothing is held, write while something is for this side.
        def choose(half):
            for each in (half, half.other):
                reads = selectors.EVENT_READ if not each.held and not each.ended else 0
                writes = selectors.EVENT_WRITE if each.other.held else 0
                if each.source in chosen.get_map():
                    chosen.unregister(each.source)
                if reads | writes:
                    chosen.register(each.source, reads | writes, each)

        def accept():
            inside, _ = listener.accept()
            outside = socket.socket(socket.AF_UNIX)
            try:
                outside.connect(path)
            except OSError:
                inside.close()
                outside.close()
                return
            halves = [Half(inside), Half(outside)]
            for half, other in zip(halves, reversed(halves)):
                half.other = other
                half.source.setblocking(False)
            choose(halves[0])

        def move(half, events):
            if events & selectors.EVENT_READ:
                half.held = half.source.recv(chunk)
                half.ended = not half.held
            if events & selectors.EVENT_WRITE and half.other.held:
                half.other.held = half.other.held[half.source.send(half.other.held):]
            for each in (half, half.other):
                if each.ended and not each.held and not each.told:
                    each.told = True
                    each.other.source.shutdown(socket.SHUT_WR)
            if half.told and half.other.told:
                close(half)
            else:
                choose(half)

        while True:
            for key, events in chosen.select():
                if key.data is None:
                    try:
                        accept()
                    except OSError:
                        pass
                elif key.data.source.fileno() >= 0:
                    try:
                        move(key.data, events)
                    except BlockingIOError:
                        pass
                    except OSError:
                        close(key.data)

    threading.Thread(target=run, daemon=True).start()


open_relay()
del open_relay
