# Runs inside the sandbox, before and around an agent's code, and speaks the line protocol of the process driver.
# Nothing here is trusted: an agent that tampers with it can only spoil its own replies.
#
# Every start waits for the imports made here, so there are none but of what the interpreter has built in. The host
# compiles this file once and not at every start.
def serve():
    import sys
    from posix import _exit, read, write

    sys.path[:] = [path for path in sys.path if path]

    def refuse(value):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")

    def codec():
        try:
            # The half of json that is written in C. The other half imports re, which takes longer than all of this.
            from _json import encode_basestring, make_encoder, make_scanner

            class Reading:
                strict, object_hook, object_pairs_hook = True, None, None
                parse_float, parse_int, parse_constant = float, int, float

            scan = make_scanner(Reading)
            chunks = make_encoder({}, refuse, encode_basestring, None, ": ", ", ", False, False, False)
            loads, dumps = lambda text: scan(text, 0)[0], lambda value: "".join(chunks(value, 0))
            if loads('{"a":[1,"b"]}') == {"a": [1, "b"]} and dumps({"a": [1, "b"]}) == '{"a": [1, "b"]}':
                return loads, dumps
        except (ImportError, AttributeError, TypeError):
            pass
        import json

        return json.loads, json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode

    loads, dumps = codec()
    pending = bytearray()

    def receive():
        while True:
            end = pending.find(b"\n")
            if end >= 0:
                line = bytes(pending[:end])
                del pending[: end + 1]
                return line
            chunk = read(3, 1 << 16)
            if not chunk:
                _exit(0)
            # A question is mostly read in one piece, and nobody asks a second one before the answer.
            if not pending and chunk.find(b"\n") == len(chunk) - 1:
                return chunk[:-1]
            pending.extend(chunk)

    def send(data):
        while data:
            data = data[write(4, data):]

    def encode(text):
        return text.encode("utf-8", "backslashreplace")

    def describe(error):
        places, trace = [], error.__traceback__
        while trace is not None:
            places.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        said = str(error)
        if isinstance(error, SyntaxError):
            places, said = [(error.filename or "", error.lineno)], error.msg
        own = [(name[len(home[0]):], line) for name, line in places if name.startswith(home[0])]
        where = "" if not own else f" ({own[-1][0]}, line {own[-1][1]})" if own[-1][0] else f" (line {own[-1][1]})"
        return encode(dumps(f"{type(error).__name__}: {said}"[:1000] + where))

    def trouble(error):
        return (b"M" if isinstance(error, MemoryError) else b"E") + describe(error)

    scope = {"__name__": "agent", "__file__": "agent.py"}
    home = ["<string>"]
    order = {}

    class Seeding:
        # Seeds the random numbers when the module that draws them is first imported.
        def find_spec(name, path=None, target=None):
            if name != "random":
                return None
            sys.meta_path.remove(Seeding)
            found = (finder.find_spec(name, path, target) for finder in sys.meta_path)
            spec = next(spec for spec in found if spec is not None)
            load = spec.loader.exec_module

            def seeded(module):
                load(module)
                module.seed(bytes.fromhex(order["seed"]))

            spec.loader.exec_module = seeded
            return spec

    # The host has checked every path; whatever is wrong here could only spoil this sandbox's own files.
    def unpack(bundle):
        import binascii, os

        folder = os.getcwd() + "/agent/"
        for path, content in bundle["files"].items():
            os.makedirs(os.path.dirname(folder + path), exist_ok=True)
            with open(folder + path, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else binascii.a2b_base64(content["base64"]))
        os.chdir(folder)
        home[0], scope["__file__"] = folder, folder + bundle["entry"]
        sys.path.insert(0, os.path.dirname(scope["__file__"]))
        with open(scope["__file__"], "rb") as file:
            return file.read()

    def boot(given):
        order.update(given)
        sys.meta_path.insert(0, Seeding)
        entry = unpack(order["bundle"]) if "bundle" in order else None
        try:
            # A single file as text, because compile() first makes a hundred classes for syntax trees: a millisecond.
            exec(order["source"] if entry is None else compile(entry, scope["__file__"], "exec"), scope)
        except (SyntaxError, ValueError) as error:
            # Without a frame of its own, the agent has not run at all.
            if error.__traceback__.tb_next is None:
                return b"S" + describe(error)
            raise
        if not callable(scope.get("act")):
            return b"N"
        return b"R"

    def call(verb, argument):
        if verb != b"act":
            names = ("on_result", "onResult") if verb == b"onResult" else (verb.decode(),)
            handler = next((scope[name] for name in names if callable(scope.get(name))), None)
            if handler is not None:
                handler(argument)
            return b"Rnull"
        value = scope["act"](argument)
        try:
            reply = encode(dumps(value))
        except (TypeError, ValueError, RecursionError) as error:
            return b"B" + describe(error)
        return b"R" + reply if len(reply) <= order["replyBytes"] else b"L%d" % len(reply)

    send(b"ready\n")
    while True:
        token, verb, body = receive().split(b" ", 2)
        try:
            argument = loads(body.decode())
            answer = boot(argument) if verb == b"boot" else call(verb, argument)
        except BaseException as error:
            try:
                answer = trouble(error)
            except BaseException:
                answer = b'E"raised something that cannot be shown"'
        send(token + b" " + answer + b"\n")


serve()
