-- The tables of schema version 1, as Farebox wrote them, with two rates of its kind. It never changes.
CREATE TABLE steps (
    id INTEGER NOT NULL,
    engine_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    step_seq BIGINT NOT NULL,
    started_ns BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL,
    idle_before_ns BIGINT NOT NULL,
    gpus BIGINT NOT NULL,
    prefill_ns BIGINT,
    decode_ns BIGINT,
    running BIGINT NOT NULL,
    waiting BIGINT NOT NULL,
    prefill_seqs BIGINT NOT NULL,
    decode_seqs BIGINT NOT NULL,
    prefill_tokens BIGINT NOT NULL,
    decode_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    recomputed_tokens BIGINT NOT NULL,
    rejected_tokens BIGINT NOT NULL,
    kv_blocks_used BIGINT,
    kv_blocks_total BIGINT,
    preemptions BIGINT NOT NULL,
    held_by TEXT,
    flops BIGINT,
    bytes BIGINT,
    basis TEXT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (engine_id, run_id, step_seq)
);
CREATE INDEX steps_by_time ON steps (started_ns);
CREATE TABLE shares (
    id INTEGER NOT NULL,
    engine_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    step_seq BIGINT NOT NULL,
    started_ns BIGINT NOT NULL,
    account TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    phase TEXT NOT NULL,
    seqs BIGINT NOT NULL,
    rows BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    attn BIGINT NOT NULL,
    kv_block_ns BIGINT NOT NULL,
    gpu_ns BIGINT,
    PRIMARY KEY (id)
);
CREATE INDEX shares_by_time ON shares (started_ns);
CREATE TABLE requests (
    id INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    engine_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    model TEXT NOT NULL,
    arrived_ns BIGINT NOT NULL,
    scheduled_ns BIGINT,
    first_token_ns BIGINT,
    finished_ns BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT,
    max_tokens BIGINT,
    finish_reason TEXT NOT NULL,
    preemptions BIGINT NOT NULL,
    prefix_ids TEXT,
    gpu_ns BIGINT,
    PRIMARY KEY (id),
    UNIQUE (engine_id, run_id, request_id)
);
CREATE INDEX requests_by_time ON requests (finished_ns);
CREATE TABLE ledger (
    id INTEGER NOT NULL,
    minute_ns BIGINT NOT NULL,
    engine_id TEXT NOT NULL,
    host TEXT NOT NULL,
    gpu_type TEXT NOT NULL,
    account TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    model TEXT NOT NULL,
    phase TEXT NOT NULL,
    gpu_ns BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    kv_block_ns BIGINT NOT NULL,
    basis TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX ledger_by_time ON ledger (minute_ns);
CREATE TABLE runs (
    engine_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    host TEXT NOT NULL,
    gpu_type TEXT NOT NULL,
    gpu_uuids TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    model TEXT NOT NULL,
    weights TEXT NOT NULL,
    mode TEXT NOT NULL,
    max_num_seqs BIGINT NOT NULL,
    max_num_batched_tokens BIGINT,
    block_bytes BIGINT,
    kv_blocks BIGINT,
    step_model TEXT,
    clock TEXT NOT NULL,
    started_ns BIGINT NOT NULL,
    load_ns BIGINT NOT NULL,
    heartbeat_ns BIGINT NOT NULL,
    ended_ns BIGINT,
    archived BOOLEAN DEFAULT 0 NOT NULL,
    PRIMARY KEY (engine_id, run_id)
);
CREATE TABLE rates (
    gpu_type TEXT NOT NULL,
    currency TEXT NOT NULL,
    per_gpu_hour TEXT NOT NULL,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT,
    note TEXT NOT NULL,
    PRIMARY KEY (gpu_type, from_ns)
);
CREATE TABLE files (
    path TEXT NOT NULL,
    table_name TEXT NOT NULL,
    date TEXT NOT NULL,
    rows BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    min_ns BIGINT NOT NULL,
    max_ns BIGINT NOT NULL,
    PRIMARY KEY (path)
);
CREATE INDEX files_by_date ON files (table_name, date);
CREATE TABLE progress (
    engine_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    steps BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    covered_ns BIGINT NOT NULL,
    PRIMARY KEY (engine_id, run_id)
);
CREATE TABLE watermarks (
    table_name TEXT NOT NULL,
    archived_id BIGINT NOT NULL,
    PRIMARY KEY (table_name)
);
CREATE TABLE schema_version (
    version INTEGER NOT NULL
);
INSERT INTO rates VALUES ('*', 'USD', '1.5', 0, 120000000000, 'example');
INSERT INTO rates VALUES ('h100_sxm', 'EUR', '3.99', 60000000000, NULL, 'contract 7');
INSERT INTO schema_version VALUES (1);
