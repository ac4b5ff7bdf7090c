"""A receiver of OTLP/HTTP traces: what vLLM tells of each request when it is finished."""
