"""HTTP/1.1 for programs that ask one server many small questions, on asyncio.

`dial` opens a connection (directly or through a proxy, with or without TLS), `wire` sends a request
and reads its answer whole or part by part, `pool` keeps connections for the next request:

    pool = Pool(Dialler("https://10.0.0.1:6443"))
    connection = await pool.take(context)
    try:
        head = await connection.send("GET", "/version", [("Host", pool.dialler.authority)])
        body = await connection.body(head)
    finally:
        pool.give_back(connection)

It stands alone and knows neither Kubernetes nor Regatta. It is no general client: no redirects, no
cookies, no compression, no HTTP/2, no retries. Time limits are the caller's (`asyncio.timeout`); a
request that is cancelled costs its connection and nothing else. Everything it raises on purpose is
a `failures.HttpError`.
"""
