# Runs inside the sandbox, before and around an agent's code, and speaks the line protocol of the process driver.
# Nothing here is trusted: an agent that tampers with it can only spoil its own replies.
def serve():
    import hashlib, json, os, random, sys, traceback

    sys.path[:] = [path for path in sys.path if path]
    read, write, dumps, loads = os.read, os.write, json.dumps, json.loads
    pending = bytearray()

    def receive():
        while True:
            end = pending.find(b"\n")
            if end >= 0:
                line = bytes(pending[:end])
                del pending[: end + 1]
                return line.decode()
            chunk = read(3, 1 << 16)
            if not chunk:
                os._exit(0)
            pending.extend(chunk)

    def send(text):
        data = text.encode("utf-8", "backslashreplace") + b"\n"
        while data:
            data = data[write(4, data):]

    def describe(error):
        places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
        said = str(error)
        if isinstance(error, SyntaxError):
            places = [(error.filename or "", error.lineno)]
            said = error.msg
        own = [(name[len(home[0]):], line) for name, line in places if name.startswith(home[0])]
        where = "" if not own else f" ({own[-1][0]}, line {own[-1][1]})" if own[-1][0] else f" (line {own[-1][1]})"
        return dumps(f"{type(error).__name__}: {said}"[:1000] + where)

    def trouble(error):
        return ("M" if isinstance(error, MemoryError) else "E") + describe(error)

    scope = {"__name__": "agent", "__file__": "agent.py"}
    home = ["agent.py"]
    limits = {}

    # The host has checked every path; whatever is wrong here could only spoil this sandbox's own files.
    def unpack(bundle):
        import binascii

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

    def boot(order):
        limits["reply"] = order["replyBytes"]
        random.seed(hashlib.sha256(order["seed"].encode()).digest())
        source = unpack(order["bundle"]) if "bundle" in order else order["source"]
        try:
            code = compile(source, scope["__file__"], "exec")
        except (SyntaxError, ValueError) as error:
            return "S" + describe(error)
        exec(code, scope)
        if not callable(scope.get("act")):
            return "N"
        return "R"

    def call(verb, argument):
        names = ("on_result", "onResult") if verb == "onResult" else (verb,)
        handler = next((scope[name] for name in names if callable(scope.get(name))), None)
        if handler is None:
            return "Rnull"
        value = handler(argument)
        if verb != "act":
            return "Rnull"
        try:
            text = dumps(value, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            return "B" + describe(error)
        size = len(text.encode("utf-8", "backslashreplace"))
        return f"L{size}" if size > limits["reply"] else "R" + text

    send("ready")
    while True:
        token, verb, body = receive().split(" ", 2)
        try:
            argument = loads(body)
            answer = boot(argument) if verb == "boot" else call(verb, argument)
        except BaseException as error:
            try:
                answer = trouble(error)
            except BaseException:
                answer = 'E"raised something that cannot be shown"'
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass
        send(token + " " + answer)


serve()
