/* A libnvidia-ml.so.1 that answers from the lines of the file FAREBOX_NVML_SCRIPT: PLACE WHAT CODE VALUES…
   PLACE is "-" for the library, "0" for a device, "0.1" for a slice. No such line: not supported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned int u32;
typedef unsigned long long u64;
enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, LIBRARY_NOT_FOUND = 12 };

static int find(const char *place, const char *what, char *values) {
    char line[512], at[64], key[64];
    int code, used, found = NOT_SUPPORTED;
    const char *script = getenv("FAREBOX_NVML_SCRIPT");
    FILE *file = script ? fopen(script, "r") : NULL;
    values[0] = 0;
    if (!file) return LIBRARY_NOT_FOUND;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%63s %63s %d %n", at, key, &code, &used) < 3 || strcmp(at, place)) continue;
        if (!strcmp(key, "all")) { found = code; break; }
        if (!strcmp(key, what)) { found = code; strcpy(values, line + used); break; }
    }
    fclose(file);
    return found;
}

/* A handle is the number of a device plus one, and for a slice 1000 times its number plus one on top. */
static const char *place_of(size_t handle, char *place) {
    size_t slice = handle / 1000, device = handle % 1000 - 1;
    if (slice) sprintf(place, "%zu.%zu", device, slice - 1);
    else sprintf(place, "%zu", device);
    return place;
}

static int ask(size_t handle, const char *what, char *values) {
    char place[64];
    return find(place_of(handle, place), what, values);
}

static int number(size_t handle, const char *what, u32 *to) {
    char values[512];
    int code = ask(handle, what, values);
    if (!code) *to = (u32)strtoul(values, 0, 10);
    return code;
}

static int text(size_t handle, const char *what, char *to, u32 size) {
    char values[512];
    int code = ask(handle, what, values);
    if (!code) snprintf(to, size, "%s", values);
    return code;
}

static int library(const char *what, char *values) { return find("-", what, values); }

int nvmlInitWithFlags(u32 flags) { char v[512]; (void)flags; return library("init", v); }
int nvmlShutdown(void) { return SUCCESS; }
int nvmlSystemGetDriverVersion(char *to, u32 size) {
    char v[512]; int code = library("driver", v);
    if (!code) snprintf(to, size, "%s", v);
    return code;
}
int nvmlDeviceGetCount_v2(u32 *to) { char v[512]; int code = library("count", v); *to = strtoul(v, 0, 10); return code; }
int nvmlDeviceGetHandleByIndex_v2(u32 index, size_t *to) {
    char v[512]; *to = index + 1; return ask(*to, "handle", v);
}
int nvmlDeviceGetUUID(size_t h, char *to, u32 size) { return text(h, "uuid", to, size); }
int nvmlDeviceGetName(size_t h, char *to, u32 size) { return text(h, "name", to, size); }
int nvmlDeviceGetMigMode(size_t h, u32 *now, u32 *pending) { int c = number(h, "mig_mode", now); *pending = *now; return c; }
int nvmlDeviceGetMaxMigDeviceCount(size_t h, u32 *to) { (void)h; *to = 7; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(size_t h, u32 index, size_t *to) {
    char v[512]; *to = h + 1000 * (index + 1); return ask(*to, "handle", v) ? NOT_FOUND : SUCCESS;
}
int nvmlDeviceGetUtilizationRates(size_t h, u32 *to) { to[1] = 0; return number(h, "utilization", to); }
int nvmlDeviceGetMemoryInfo(size_t h, u64 *to) {
    char v[512]; int code = ask(h, "memory", v);
    if (!code) sscanf(v, "%llu %llu %llu", to, to + 1, to + 2);
    return code;
}
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(size_t h, struct memory_v2 *to) {
    char v[512]; int code = ask(h, "memory_v2", v);
    if (!code) sscanf(v, "%llu %llu %llu", &to->total, &to->free, &to->used);
    return code;
}
int nvmlDeviceGetPowerUsage(size_t h, u32 *to) { return number(h, "power", to); }
int nvmlDeviceGetEnforcedPowerLimit(size_t h, u32 *to) { return number(h, "power_limit", to); }
int nvmlDeviceGetClockInfo(size_t h, u32 kind, u32 *to) { return kind == 1 ? number(h, "sm_clock", to) : NOT_SUPPORTED; }
int nvmlDeviceGetTemperature(size_t h, u32 sensor, u32 *to) { (void)sensor; return number(h, "temperature", to); }
int nvmlDeviceGetTotalEnergyConsumption(size_t h, u64 *to) {
    char v[512]; int code = ask(h, "energy", v);
    if (!code) *to = strtoull(v, 0, 10);
    return code;
}
struct field { u32 id, scope; long long at, took; int type, code; u64 value; };
int nvmlDeviceGetFieldValues(size_t h, int count, struct field *fields) {
    char v[512], all[64];
    int lost = ask(h, "fields", v);
    if (lost && lost != NOT_SUPPORTED) return lost;
    for (int i = 0; i < count; i++) {
        u32 found = 0;
        sprintf(all, "field_%u_%u", fields[i].id, fields[i].scope);
        fields[i].code = number(h, all, &found);
        fields[i].type = 1;
        fields[i].value = found;
    }
    return SUCCESS;
}
