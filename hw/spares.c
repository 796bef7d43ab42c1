#include "hw/spares.h"

#include <string.h>

/* The word: how many users there are, of which a node does not have more; how often the same have
 * returned; and whether somebody has let go. */
#define USERS ((uint32_t)0xffff)
#define LIFE ((uint32_t)0x7fff << 16)
#define GONE ((uint32_t)1 << 31)

void collx_spare_begin(uint32_t *users, int sharers)
{
    /* Relaxed: the others hear of the segment by a message. */
    __atomic_store_n(users, (uint32_t)sharers, __ATOMIC_RELAXED);
}

bool collx_spare_leave(uint32_t *users)
{
    /* Release: pairs with the acquire in claim() and let_go(); else our last accesses could meet
     * what the next users have there, or bring memory back that is gone. */
    return !(__atomic_fetch_sub(users, 1, __ATOMIC_RELEASE) & GONE);
}

void collx_spare_return(uint32_t *users, int sharers, unsigned life)
{
    const uint32_t now = (uint32_t)life << 16 & LIFE;
    uint32_t seen = __atomic_load_n(users, __ATOMIC_RELAXED);

    /* Relaxed: what is there has been this sharer's all the time. */
    while ((seen & LIFE) != now &&
           !__atomic_compare_exchange_n(users, &seen, (seen & GONE) | now | (uint32_t)sharers,
                                        false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

bool collx_spare_let_go(uint32_t *users)
{
    /* Acquire: pairs with the release in collx_spare_leave(), likewise. */
    return !(__atomic_fetch_or(users, GONE, __ATOMIC_ACQUIRE) & USERS);
}

static bool claim(uint32_t *users, int sharers)
{
    uint32_t seen = __atomic_load_n(users, __ATOMIC_RELAXED);

    /* Acquire: pairs with the release in collx_spare_leave(), of all who have left: each has added
     * to what the one before it has released. */
    return !(seen & (USERS | GONE)) &&
           __atomic_compare_exchange_n(users, &seen, (uint32_t)sharers, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static bool is_gone(const struct collx_spare *spare)
{
    /* Relaxed: nothing is read for it. */
    return __atomic_load_n(spare->users, __ATOMIC_RELAXED) & GONE;
}

static struct collx_spare remove_at(struct collx_spares *spares, int i)
{
    const struct collx_spare removed = spares->spare[i];

    spares->count--;
    memmove(&spares->spare[i], &spares->spare[i + 1], (size_t)(spares->count - i) * sizeof removed);
    return removed;
}

bool collx_spares_keep(struct collx_spares *spares, const struct collx_spare *spare,
                       struct collx_spare *over)
{
    pthread_mutex_lock(&spares->lock);
    const bool full = spares->count == COLLX_SPARES;
    if (full)
        *over = remove_at(spares, 0);
    spares->spare[spares->count++] = *spare;
    pthread_mutex_unlock(&spares->lock);
    return !full;
}

void collx_spares_tell(struct collx_spares *spares, uint64_t cookie[COLLX_SPARES])
{
    pthread_mutex_lock(&spares->lock);
    for (int i = 0; i < COLLX_SPARES; i++)
        cookie[i] = i < spares->count ? spares->spare[i].cookie : 0;
    pthread_mutex_unlock(&spares->lock);
}

bool collx_spares_include(const uint64_t cookies[COLLX_SPARES], uint64_t cookie)
{
    bool found = false;

    for (int i = 0; i < COLLX_SPARES && cookie; i++)
        found = found || cookies[i] == cookie;
    return found;
}

bool collx_spares_are_full(struct collx_spares *spares)
{
    pthread_mutex_lock(&spares->lock);
    const bool full = spares->count == COLLX_SPARES;
    pthread_mutex_unlock(&spares->lock);
    return full;
}

bool collx_spares_claim(struct collx_spares *spares, const uint64_t cookie[COLLX_SPARES], bool any,
                        struct collx_spare *wanted)
{
    bool found = false;

    pthread_mutex_lock(&spares->lock);
    for (int i = spares->count - 1; i >= 0 && !found; i--) {
        const struct collx_spare *each = &spares->spare[i];
        found = each->size == wanted->size && each->sharers == wanted->sharers &&
                each->layout == wanted->layout && (any || !each->with) &&
                collx_spares_include(cookie, each->cookie) && claim(each->users, each->sharers);
        if (found)
            *wanted = remove_at(spares, i);
    }
    pthread_mutex_unlock(&spares->lock);
    return found;
}

bool collx_spares_take(struct collx_spares *spares, uint64_t cookie, struct collx_spare *taken)
{
    bool found = false;

    pthread_mutex_lock(&spares->lock);
    for (int i = 0; i < spares->count && !found; i++) {
        found = spares->spare[i].cookie == cookie;
        if (found)
            *taken = remove_at(spares, i);
    }
    pthread_mutex_unlock(&spares->lock);
    return found;
}

bool collx_spares_find(struct collx_spares *spares,
                       bool (*is)(const struct collx_spare *spare, const void *context),
                       const void *context, struct collx_spare *found)
{
    pthread_mutex_lock(&spares->lock);
    int i = spares->count - 1;
    while (i >= 0 && !is(&spares->spare[i], context))
        i--;
    if (i >= 0 && found)
        *found = remove_at(spares, i);
    pthread_mutex_unlock(&spares->lock);
    return i >= 0;
}

bool collx_spares_drop(struct collx_spares *spares, bool any, struct collx_spare *dropped)
{
    int found = 0;

    pthread_mutex_lock(&spares->lock);
    while (found < spares->count && !is_gone(&spares->spare[found]))
        found++;
    if (any && found == spares->count)
        found = 0;
    const bool is = found < spares->count;
    if (is)
        *dropped = remove_at(spares, found);
    pthread_mutex_unlock(&spares->lock);
    return is;
}
