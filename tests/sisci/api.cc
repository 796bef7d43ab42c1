/* The entry points of the stand-in. */
#include "tests/sisci/errors.h"
#include "tests/sisci/map.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))
#define FUNCTION(name) _SISCI_PUBLIC_FUNC_MT_SCI##name

/* Unlike those of the real one, so that nobody gets by with a number that he knows by heart. */
EXPORT const unsigned _SISCI_PUBLIC_CONST_SCI_FLAG_NO_STORE_BARRIER;
const unsigned _SISCI_PUBLIC_CONST_SCI_FLAG_NO_STORE_BARRIER = 0x5a10;

namespace standin
{

struct LocalSegment;
struct RemoteSegment;

/* Takes one resource of each kind. */
struct Descriptor {
    LocalSegment *local = nullptr;
    RemoteSegment *remote = nullptr;
};

struct AnyMap {
    LocalSegment *local = nullptr;
    RemoteSegment *remote = nullptr;
    std::unique_ptr<Map> map; /* of a remote one */
    unsigned sequences = 0;
};

struct LocalSegment {
    Descriptor *owner;
    File file;
    AnyMap *map = nullptr;
    bool prepared = false, available = false;
};

struct RemoteSegment {
    Descriptor *owner;
    File file;
    AnyMap *map = nullptr;
};

struct Sequence {
    AnyMap *map;
    uint64_t seen = 0;
    unsigned state = 2; /* OK 0, RETRIABLE 1, NOT_RETRIABLE 2, PENDING 3: it is to be started */
    unsigned restarts = 0;
};

/* The first part of the state: one thread's dlclose() ends it before another one's dlopen() begins
 * the next in its place.  The loader sees to that, which ThreadSanitizer does not know. */
struct Succession {
#ifdef __SANITIZE_THREAD__
    Succession()
    {
        __tsan_acquire(this);
    }
    ~Succession()
    {
        __tsan_release(this);
    }
#endif
};

struct State {
    Succession succession;
    std::mutex lock; /* of the sets and of counts */
    Settings settings;
    bool initialized = false;
    std::set<const void *> handles;
    std::set<AnyMap *> maps;
    unsigned numbers = 0;
    Counts counts = {};
};

/* Made when it is first asked for, not when this is loaded: what one thread's dlopen() constructs
 * comes before what another one's returns, but ThreadSanitizer does not know that either. */
State &all()
{
    static State state;
    return state;
}

[[noreturn]] void fuss(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("stand-in for libsisci: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

template <class T> T *take(void *handle, const char *what)
{
    std::lock_guard<std::mutex> guard(all().lock);
    if (!all().handles.count(handle))
        fuss("%s: no such handle", what);
    return static_cast<T *>(handle);
}

template <class T> T *keep(T *object)
{
    std::lock_guard<std::mutex> guard(all().lock);
    all().handles.insert(object);
    return object;
}

template <class T> void drop(T *object)
{
    {
        std::lock_guard<std::mutex> guard(all().lock);
        all().handles.erase(object);
    }
    delete object;
}

/* Every call: errors become codes. */
template <class F> void guarded(unsigned flags, unsigned *error, F body)
{
    *error = 0;
    try {
        if (!all().initialized)
            fuss("a call before SCIInitialize");
        if (flags)
            throw Error{ERROR_ILLEGAL_FLAG};
        body();
    } catch (const Error &failure) {
        *error = failure.code;
    }
}

void need_adapter(unsigned adapter)
{
    if (adapter >= all().settings.adapters)
        throw Error{ERROR_NO_SUCH_ADAPTER};
}

void need(bool condition)
{
    if (!condition)
        throw Error{ERROR_BUSY};
}

void add(const Counts &more)
{
    std::lock_guard<std::mutex> guard(all().lock);
    auto *to = reinterpret_cast<uint64_t *>(&all().counts);
    auto *from = reinterpret_cast<const uint64_t *>(&more);
    for (size_t i = 0; i < sizeof more / sizeof *to; i++)
        to[i] += from[i];
}

/* The maps that a barrier or a check by this sequence covers. */
std::vector<Map *> covered(const Sequence *sequence)
{
    if (!all().settings.shared)
        return {sequence->map->map.get()};
    std::vector<Map *> maps;
    std::lock_guard<std::mutex> guard(all().lock);
    for (AnyMap *map : all().maps)
        maps.push_back(map->map.get());
    return maps;
}

void send(const Sequence *sequence)
{
    Counts counts = {};

    counts.barriers = 1;
    spend(all().settings.barrier_ns);
    for (Map *map : covered(sequence))
        map->send(counts);
    add(counts);
}

uint64_t faults_of(const Sequence *sequence)
{
    uint64_t faults = 0;

    for (const Map *map : covered(sequence))
        faults += map->faults;
    return faults;
}

/* Also without a fault of its own: a failure may be reported though nothing was stored. */
bool has_failed(Sequence *sequence)
{
    bool sent = false;

    for (Map *map : covered(sequence)) {
        map->complete();
        sent = std::exchange(map->sent, false) || sent;
    }
    uint64_t faults = faults_of(sequence);
    bool failed = faults != std::exchange(sequence->seen, faults);
    return failed || (!sent && happens(sequence->map->map->random, all().settings.fail));
}

unsigned check(Sequence *sequence)
{
    Map &map = *sequence->map->map;
    Counts counts = {};

    counts.checks = 1;
    spend(all().settings.check_ns);
    if (sequence->state < 2) {
        bool failed = has_failed(sequence);
        sequence->state = failed;
        if (!map.is_there() || (failed && happens(map.random, all().settings.hard)))
            sequence->state = 2;
        else if (failed && happens(map.random, all().settings.pending))
            sequence->state = 3;
        counts.failures = sequence->state > 0;
        counts.hard = sequence->state == 2;
        counts.pending = sequence->state == 3;
        if (sequence->state >= 2) {
            map.broken = true;
            sequence->restarts = map.random() % 4;
        }
    }
    add(counts);
    return sequence->state;
}

unsigned start(Sequence *sequence)
{
    Counts counts = {};

    counts.starts = 1;
    add(counts);
    if (!sequence->map->map->is_there())
        return sequence->state = 2;
    if (sequence->restarts > 0) {
        sequence->restarts--;
        return sequence->state;
    }
    sequence->map->map->broken = false;
    /* What went wrong before is forgotten. */
    sequence->seen = faults_of(sequence);
    return sequence->state = 0;
}

} // namespace standin

using namespace standin;

EXPORT void standin_counts(Counts *counts)
{
    std::lock_guard<std::mutex> guard(all().lock);
    *counts = all().counts;
}

EXPORT void FUNCTION(Initialize)(unsigned flags, unsigned *error)
{
    if (all().initialized)
        fuss("SCIInitialize a second time");
    all().settings = settings_from_environment();
    all().initialized = true;
    all().counts = {};
    guarded(flags, error, [] {});
}

EXPORT void FUNCTION(Terminate)()
{
    if (!all().initialized)
        fuss("SCITerminate without SCIInitialize");
    if (!all().handles.empty())
        fuss("%zu things are left at SCITerminate", all().handles.size());
    all().initialized = false;
}

EXPORT void FUNCTION(GetLocalNodeId)(unsigned adapter, unsigned *node, unsigned flags,
                                     unsigned *error)
{
    guarded(flags, error, [&] {
        need_adapter(adapter);
        *node = all().settings.node;
    });
}

EXPORT void FUNCTION(Open)(void **descriptor, unsigned flags, unsigned *error)
{
    guarded(flags, error, [&] { *descriptor = keep(new Descriptor); });
}

EXPORT void FUNCTION(Close)(void *descriptor, unsigned flags, unsigned *error)
{
    guarded(flags, error, [&] {
        auto *d = take<Descriptor>(descriptor, "SCIClose");
        need(!d->local && !d->remote);
        drop(d);
    });
}

EXPORT void FUNCTION(CreateSegment)(void *descriptor, void **segment, unsigned id, size_t size,
                                    void *, void *, unsigned flags, unsigned *error)
{
    guarded(flags, error, [&] {
        auto *d = take<Descriptor>(descriptor, "SCICreateSegment");
        need(!d->local);
        File file = File::create(all().settings, all().settings.node, id, size);
        d->local = keep(new LocalSegment{d, std::move(file)});
        *segment = d->local;
    });
}

EXPORT void FUNCTION(PrepareSegment)(void *segment, unsigned adapter, unsigned flags,
                                     unsigned *error)
{
    guarded(flags, error, [&] {
        auto *s = take<LocalSegment>(segment, "SCIPrepareSegment");
        need_adapter(adapter);
        need(!s->prepared);
        s->prepared = true;
    });
}

EXPORT void *FUNCTION(MapLocalSegment)(void *segment, void **map, size_t offset, size_t size,
                                       void *, unsigned flags, unsigned *error)
{
    void *address = nullptr;

    guarded(flags, error, [&] {
        auto *s = take<LocalSegment>(segment, "SCIMapLocalSegment");
        need(!s->map);
        if (offset + size > s->file.size())
            throw Error{ERROR_OUT_OF_RANGE};
        s->map = keep(new AnyMap);
        s->map->local = s;
        *map = s->map;
        address = s->file.data() + offset;
    });
    return address;
}

EXPORT void FUNCTION(SetSegmentAvailable)(void *segment, unsigned adapter, unsigned flags,
                                          unsigned *error)
{
    guarded(flags, error, [&] {
        auto *s = take<LocalSegment>(segment, "SCISetSegmentAvailable");
        need_adapter(adapter);
        need(s->prepared && !s->available);
        s->available = true;
        s->file.set_available(true);
    });
}

EXPORT void FUNCTION(SetSegmentUnavailable)(void *segment, unsigned adapter, unsigned flags,
                                            unsigned *error)
{
    guarded(flags, error, [&] {
        auto *s = take<LocalSegment>(segment, "SCISetSegmentUnavailable");
        need_adapter(adapter);
        need(s->available);
        s->available = false;
        s->file.set_available(false);
    });
}

EXPORT void FUNCTION(RemoveSegment)(void *segment, unsigned flags, unsigned *error)
{
    guarded(flags, error, [&] {
        auto *s = take<LocalSegment>(segment, "SCIRemoveSegment");
        need(!s->map && !s->available);
        s->owner->local = nullptr;
        s->file.remove();
        drop(s);
    });
}

EXPORT void FUNCTION(ConnectSegment)(void *descriptor, void **remote, unsigned node, unsigned id,
                                     unsigned adapter, void *, void *, unsigned, unsigned flags,
                                     unsigned *error)
{
    guarded(flags, error, [&] {
        auto *d = take<Descriptor>(descriptor, "SCIConnectSegment");
        need_adapter(adapter);
        need(!d->remote);
        File file = File::connect(all().settings, node, id);
        d->remote = keep(new RemoteSegment{d, std::move(file)});
        *remote = d->remote;
    });
}

EXPORT void FUNCTION(DisconnectSegment)(void *remote, unsigned flags, unsigned *error)
{
    guarded(flags, error, [&] {
        auto *r = take<RemoteSegment>(remote, "SCIDisconnectSegment");
        need(!r->map);
        r->owner->remote = nullptr;
        drop(r);
    });
}

EXPORT void *FUNCTION(MapRemoteSegment)(void *remote, void **map, size_t offset, size_t size,
                                        void *, unsigned flags, unsigned *error)
{
    void *address = nullptr;

    guarded(flags, error, [&] {
        auto *r = take<RemoteSegment>(remote, "SCIMapRemoteSegment");
        need(!r->map);
        if (offset + size > r->file.size())
            throw Error{ERROR_OUT_OF_RANGE};
        r->map = keep(new AnyMap);
        r->map->remote = r;
        std::lock_guard<std::mutex> guard(all().lock);
        r->map->map = std::make_unique<Map>(all().settings, r->file, offset, size, all().numbers++);
        all().maps.insert(r->map);
        *map = r->map;
        address = r->map->map->address();
    });
    return address;
}

EXPORT void FUNCTION(UnmapSegment)(void *map, unsigned flags, unsigned *error)
{
    guarded(flags, error, [&] {
        auto *m = take<AnyMap>(map, "SCIUnmapSegment");
        need(!m->sequences);
        if (m->local)
            m->local->map = nullptr;
        else
            m->remote->map = nullptr;
        {
            std::lock_guard<std::mutex> guard(all().lock);
            all().maps.erase(m);
        }
        drop(m);
    });
}

EXPORT void FUNCTION(CreateMapSequence)(void *map, void **sequence, unsigned flags, unsigned *error)
{
    guarded(flags, error, [&] {
        auto *m = take<AnyMap>(map, "SCICreateMapSequence");
        need(m->remote);
        auto *s = keep(new Sequence{m});
        m->sequences++;
        m->map->broken = true;
        s->restarts = all().settings.starts - 1;
        *sequence = s;
    });
}

EXPORT void FUNCTION(RemoveSequence)(void *sequence, unsigned flags, unsigned *error)
{
    guarded(flags, error, [&] {
        auto *s = take<Sequence>(sequence, "SCIRemoveSequence");
        s->map->sequences--;
        drop(s);
    });
}

EXPORT unsigned FUNCTION(StartSequence)(void *sequence, unsigned flags, unsigned *error)
{
    unsigned state = 2;

    guarded(flags, error,
            [&] { state = standin::start(take<Sequence>(sequence, "SCIStartSequence")); });
    return state;
}

EXPORT unsigned FUNCTION(CheckSequence)(void *sequence, unsigned flags, unsigned *error)
{
    const unsigned no_barrier = _SISCI_PUBLIC_CONST_SCI_FLAG_NO_STORE_BARRIER;
    unsigned state = 2;

    guarded(flags & ~no_barrier, error, [&] {
        auto *s = take<Sequence>(sequence, "SCICheckSequence");
        if (!(flags & no_barrier))
            standin::send(s);
        state = standin::check(s);
    });
    return state;
}

EXPORT void FUNCTION(StoreBarrier)(void *sequence, unsigned flags)
{
    unsigned error;

    guarded(flags, &error, [&] { standin::send(take<Sequence>(sequence, "SCIStoreBarrier")); });
    if (error)
        fuss("SCIStoreBarrier with flags 0x%x", flags);
}

EXPORT void FUNCTION(Flush)(void *sequence, unsigned flags)
{
    unsigned error;

    guarded(flags, &error, [&] { standin::send(take<Sequence>(sequence, "SCIFlush")); });
    if (error)
        fuss("SCIFlush with flags 0x%x", flags);
}
