#include "algorithms/between/seg_streams.h"

#include "algorithms/wait.h"
#include "base/error.h"
#include "hw/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 4,
    /* A reader tells how far it is whenever it has taken out so many. */
    TELL_EVERY = SLOTS / 2,
    SLOT_LINES_MOST = 128,
    /* Of a node's segment, if that leaves a line a slot. */
    SEGMENT_MOST = 4 << 20,
    LINE_LEAST = 16,
    /* Lines of an area before its slots. */
    CONSUMED = 0,
    FAREWELL,
    FIRST_SLOT,
    /* Numbers wrap around, and a flag of a line that short chunks do not reach would seem to be
     * ahead one day.  So once in so many chunks the ring is written as a whole. */
    REFRESH = 1 << 28,
};
_Static_assert((SLOTS & (SLOTS - 1)) == 0 && REFRESH % SLOTS == 0,
               "a slot's chunks stay in it when numbers wrap around");
static const uint32_t GOODBYE = 1;

int collx_seg_streams_fit(const struct collx_seg_links *links, char *why, size_t size)
{
    const size_t line = links->caps.line;

    if (line >= LINE_LEAST && (!links->lent || line <= COLLX_LINE))
        return 0;
    if (line < LINE_LEAST)
        snprintf(why, size,
                 "lines of %zu bytes have no room for data beside a flag: COLLX_SISCI_LINE has to "
                 "be %d or more",
                 line, LINE_LEAST);
    else
        snprintf(why, size, "lines of %zu bytes are longer than %d; over=p2p takes any network",
                 line, COLLX_LINE);
    return COLLX_EUNFIT;
}

static bool is_whole(const struct collx_seg_streams *streams)
{
    return streams->links->caps.flags & COLLX_SEG_WHOLE_LINES;
}

/* Of a slot, in a segment for so many nodes. */
static size_t slot_lines(size_t line, int nodes)
{
    const size_t share = SEGMENT_MOST / (SLOTS * line * (size_t)nodes);

    return share < 1 ? 1 : share > SLOT_LINES_MOST ? SLOT_LINES_MOST : share;
}

size_t collx_seg_streams_most(int nodes)
{
    /* Shorter lines share what is there more finely. */
    return (size_t)nodes * (FIRST_SLOT + SLOTS) * (slot_lines(COLLX_LINE, nodes) + 1) * COLLX_LINE;
}

static size_t area_bytes(const struct collx_seg_streams *streams)
{
    return (FIRST_SLOT + SLOTS * streams->lines) * streams->line;
}

size_t collx_seg_streams_lay_out(struct collx_seg_streams *streams, struct collx_seg_links *links,
                                 int own, size_t least)
{
    const size_t line = links->caps.line;

    *streams = (struct collx_seg_streams){
        .links = links, .own = own, .line = line, .lines = slot_lines(line, links->nodes)};
    if (!is_whole(streams)) {
        streams->line = least = line * streams->lines;
        streams->lines = 1;
    }
    streams->data = least - sizeof(uint32_t);
    return (size_t)links->nodes * area_bytes(streams);
}

/* Of a line in the area of `writer`, in whoever's segment; where its data ends and its flag is. */
static size_t flag_at(const struct collx_seg_streams *streams, int writer, size_t line)
{
    return (size_t)writer * area_bytes(streams) + collx_seg_flag(line, streams->line);
}

int collx_seg_streams_connect(struct collx_seg_streams *streams,
                              const struct collx_seg_addresses *addresses, char *why, size_t size)
{
    struct collx_seg_links *links = streams->links;
    const size_t nodes = (size_t)links->nodes;
    int error = 0;

    streams->stream = calloc(nodes, sizeof *streams->stream);
    streams->to = calloc(nodes, sizeof *streams->to);
    streams->image = calloc(1, streams->line);
    if (!streams->stream || !streams->to || !streams->image) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    links->farewell = GOODBYE;
    for (int node = 0; node < links->nodes && !error; node++) {
        if (node == streams->own)
            continue;
        links->link[node].farewell_at = flag_at(streams, streams->own, FAREWELL);
        links->link[node].farewell_own = flag_at(streams, node, FAREWELL);
        error = collx_seg_links_connect(links, node, addresses, why, size);
    }
    return error;
}

static size_t slot_line(const struct collx_seg_streams *streams, uint32_t chunk)
{
    return FIRST_SLOT + chunk % SLOTS * streams->lines;
}

static size_t chunk_bytes(const struct collx_seg_streams *streams)
{
    return streams->lines * streams->data;
}

/* A message of no bytes is one, too. */
static uint32_t chunks_of(const struct collx_seg_streams *streams,
                          const struct collx_message *message)
{
    const size_t bytes = chunk_bytes(streams);

    return message->bytes ? (uint32_t)((message->bytes + bytes - 1) / bytes) : 1;
}

/* Which part of a message its chunk number `i` is. */
static size_t part_of(const struct collx_seg_streams *streams, const struct collx_message *message,
                      uint32_t i, unsigned char **data)
{
    const size_t bytes = chunk_bytes(streams), first = i * bytes;
    const size_t rest = message->bytes - first;

    *data = (unsigned char *)message->data + (message->bytes ? first : 0);
    return rest < bytes ? rest : bytes;
}

static size_t lines_of(const struct collx_seg_streams *streams, size_t bytes)
{
    return bytes ? (bytes + streams->data - 1) / streams->data : 1;
}

static void store_flag(struct collx_seg_streams *streams, int node, size_t line, uint32_t value)
{
    const struct collx_seg_links *links = streams->links;

    links->ops->store(links->link[node].remote, flag_at(streams, streams->own, line), value);
}

static void store_line(struct collx_seg_streams *streams, int node, size_t line,
                       const unsigned char *data, size_t bytes, uint32_t chunk)
{
    const struct collx_seg_links *links = streams->links;
    const size_t words = (bytes + sizeof chunk - 1) & ~(sizeof chunk - 1);

    if (bytes) {
        memcpy(streams->image, data, bytes);
        memcpy(streams->image + words, &chunk, sizeof chunk);
        links->ops->copy(links->link[node].remote, flag_at(streams, streams->own, line) - words,
                         streams->image, words + (is_whole(streams) ? sizeof chunk : 0));
    } else if (is_whole(streams)) {
        store_flag(streams, node, line, chunk);
    }
}

static void store_chunk(struct collx_seg_streams *streams, int node, uint32_t chunk)
{
    const struct collx_seg_stream *stream = &streams->stream[node];
    unsigned char *data;
    size_t bytes = part_of(streams, stream->out, chunk - stream->out_first, &data);
    const size_t first = slot_line(streams, chunk);
    const size_t lines = chunk % REFRESH < SLOTS ? streams->lines : lines_of(streams, bytes);

    if (streams->flag_now)
        store_flag(streams, node, first, chunk);
    for (size_t line = first; line < first + lines && !streams->flag_now; line++) {
        const size_t here = bytes < streams->data ? bytes : streams->data;
        store_line(streams, node, line, data, here, chunk);
        data += here;
        bytes -= here;
    }
}

/* For collx_seg_links_deliver: all that this node has not got for sure. */
static void store(void *context, unsigned i)
{
    struct collx_seg_streams *streams = context;
    const int node = streams->to[i];
    const struct collx_seg_stream *stream = &streams->stream[node];

    for (uint32_t chunk = stream->arrived; chunk != stream->sent; chunk++)
        store_chunk(streams, node, chunk + 1);
    if (stream->told != stream->taken && !streams->data_now)
        store_flag(streams, node, CONSUMED, stream->taken);
}

/* In one's own segment. */
static uint32_t read_flag(const struct collx_seg_streams *streams, int writer, size_t line)
{
    return collx_seg_read(streams->links->local, flag_at(streams, writer, line));
}

static bool has_arrived(const struct collx_seg_streams *streams, int node)
{
    const struct collx_seg_stream *stream = &streams->stream[node];
    const uint32_t chunk = stream->taken + 1;
    unsigned char *data;
    const size_t first = slot_line(streams, chunk);
    size_t lines = lines_of(streams, part_of(streams, stream->in, chunk - stream->in_first, &data));

    /* The last one as a rule comes last. */
    while (lines--)
        if (!collx_seg_reached(read_flag(streams, node, first + lines), chunk))
            return false;
    return true;
}

static void take_out(struct collx_seg_streams *streams, int node)
{
    struct collx_seg_stream *stream = &streams->stream[node];
    const uint32_t chunk = ++stream->taken;
    unsigned char *data;
    size_t bytes = part_of(streams, stream->in, chunk - stream->in_first, &data);

    for (size_t line = slot_line(streams, chunk); bytes; line++) {
        const size_t here = bytes < streams->data ? bytes : streams->data;
        const size_t words = (here + sizeof chunk - 1) & ~(sizeof chunk - 1);
        memcpy(data, (const char *)streams->links->local + flag_at(streams, node, line) - words,
               here);
        data += here;
        bytes -= here;
    }
}

static bool has_room(const struct collx_seg_streams *streams, int node)
{
    return collx_seg_reached(read_flag(streams, node, CONSUMED),
                             streams->stream[node].sent + 1 - SLOTS);
}

static bool has_to_send(const struct collx_seg_stream *stream)
{
    return stream->out && stream->sent + 1 != stream->out_end;
}

static bool has_to_receive(const struct collx_seg_stream *stream)
{
    return stream->in && stream->taken + 1 != stream->in_end;
}

/* A wait in a transfer, for collx_wait_long. */
struct wait {
    const struct collx_seg_streams *streams;
    const struct collx_message *messages;
    int count;
};

static bool can_go_on(const void *with, int i, uint64_t value)
{
    const struct wait *wait = with;

    (void)i, (void)value;
    for (i = 0; i < wait->count; i++) {
        const int node = wait->messages[i].rank;
        const struct collx_seg_stream *stream = &wait->streams->stream[node];
        if (wait->messages[i].sends ? has_to_send(stream) && has_room(wait->streams, node)
                                    : has_to_receive(stream) && has_arrived(wait->streams, node))
            return true;
    }
    return false;
}

static bool is_missing(const void *with, int rank)
{
    const struct wait *wait = with;

    for (int i = 0; i < wait->count; i++) {
        const int node = wait->messages[i].rank;
        const struct collx_seg_stream *stream = &wait->streams->stream[node];
        if (wait->streams->links->leader[node] == rank &&
            (wait->messages[i].sends ? has_to_send(stream) : has_to_receive(stream)))
            return true;
    }
    return false;
}

static void meanwhile(void *with)
{
    const struct collx_seg_links *links = ((const struct wait *)with)->streams->links;

    if (links->ops->progress)
        links->ops->progress(links->net);
}

static void wait_for_any(struct collx_seg_streams *streams, const struct collx_message *messages,
                         int count, const char *what)
{
    struct collx_team *team = streams->links->team;
    struct wait wait = {streams, messages, count};

    for (int spin = team->spins; spin >= 0; spin--) {
        if (can_go_on(&wait, 0, 0))
            return;
        meanwhile(&wait);
        collx_poll_gap(team);
    }
    collx_wait_long(team,
                    &(struct collx_wait){.count = 1,
                                         .what = what,
                                         .meanwhile = meanwhile,
                                         .reached = can_go_on,
                                         .missing = is_missing,
                                         .relayed = true,
                                         .with = &wait},
                    0);
}

static int store_all(struct collx_seg_streams *streams, unsigned count)
{
    return collx_seg_links_deliver(streams->links, streams->to, count, store, streams);
}

/* All that can be stored now, in one go. */
static int deliver(struct collx_seg_streams *streams, const struct collx_message *messages,
                   int count)
{
    unsigned some = 0;

    for (int i = 0; i < count; i++) {
        const int node = messages[i].rank;
        struct collx_seg_stream *stream = &streams->stream[node];

        if (stream->listed ||
            (stream->sent == stream->arrived && stream->taken - stream->told < TELL_EVERY))
            continue;
        stream->listed = true;
        streams->to[some++] = node;
    }
    streams->data_now = !is_whole(streams);
    int error = store_all(streams, some);
    if (!error && streams->data_now) {
        streams->data_now = false;
        streams->flag_now = true;
        error = store_all(streams, some);
        streams->flag_now = false;
    }
    if (error)
        return error;
    for (unsigned i = 0; i < some; i++) {
        struct collx_seg_stream *stream = &streams->stream[streams->to[i]];
        stream->arrived = stream->sent;
        stream->told = stream->taken;
        stream->listed = false;
    }
    return 0;
}

static void begin(struct collx_seg_streams *streams, const struct collx_message *message)
{
    struct collx_seg_stream *stream = &streams->stream[message->rank];
    const uint32_t chunks = chunks_of(streams, message);

    if (message->sends) {
        stream->out = message;
        stream->out_first = stream->sent + 1;
        stream->out_end = stream->out_first + chunks;
    } else {
        stream->in = message;
        stream->in_first = stream->taken + 1;
        stream->in_end = stream->in_first + chunks;
    }
}

/* What can be done without waiting.  *open: how many messages are not through. */
static bool go_on(struct collx_seg_streams *streams, const struct collx_message *messages,
                  int count, int *open)
{
    bool moved = false;

    *open = 0;
    for (int i = 0; i < count; i++) {
        const int node = messages[i].rank;
        struct collx_seg_stream *stream = &streams->stream[node];

        if (messages[i].sends) {
            for (; has_to_send(stream) && has_room(streams, node); moved = true)
                stream->sent++;
            *open += has_to_send(stream);
        } else {
            for (; has_to_receive(stream) && has_arrived(streams, node); moved = true)
                take_out(streams, node);
            *open += has_to_receive(stream);
        }
    }
    return moved;
}

/* Who has gone may have got all that it wanted. */
static bool has_sent_in_vain(const struct collx_seg_streams *streams,
                             const struct collx_message *messages, int count)
{
    for (int i = 0; i < count; i++) {
        const struct collx_seg_stream *stream = &streams->stream[messages[i].rank];
        if (stream->sent != stream->arrived)
            return true;
    }
    return false;
}

int collx_seg_streams_transfer(struct collx_seg_streams *streams,
                               const struct collx_message *messages, int count, const char *what)
{
    int open = count, error = streams->links->gone ? -ENOTCONN : 0;

    streams->links->used = true;
    for (int i = 0; i < count; i++)
        begin(streams, &messages[i]);
    while (!error && open) {
        const bool moved = go_on(streams, messages, count, &open);
        error = deliver(streams, messages, count);
        /* All have been received; that they have been taken out is of use to the next ones. */
        if (error && !open && !has_sent_in_vain(streams, messages, count))
            error = 0;
        if (!error && open && !moved)
            wait_for_any(streams, messages, count, what);
    }
    for (int i = 0; i < count; i++)
        streams->stream[messages[i].rank].out = streams->stream[messages[i].rank].in = NULL;
    return error;
}

void collx_seg_streams_finish(struct collx_seg_streams *streams)
{
    free(streams->stream);
    free(streams->to);
    free(streams->image);
    *streams = (struct collx_seg_streams){.links = NULL};
}
