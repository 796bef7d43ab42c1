#include "pmpi/hold.h"

#include "pmpi/pmpi.h"
#include "pmpi/types.h"
#include "pmpi/world.h"

#include <pthread.h>

/* Guards the lists.  Never held across a call into MPI. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct collx_held *types, *ops;

static struct collx_held *find(struct collx_held *list, uintptr_t handle)
{
    while (list && list->handle != handle)
        list = list->next;
    return list;
}

static void add(struct collx_held **list, struct collx_held *held, uintptr_t handle)
{
    *held = (struct collx_held){.handle = handle};
    pthread_mutex_lock(&lock);
    held->next = *list;
    *list = held;
    pthread_mutex_unlock(&lock);
}

/* How often the handle has to be freed now. */
static int remove_from(struct collx_held **list, struct collx_held *held)
{
    struct collx_held **at = list, *other;
    int frees;

    pthread_mutex_lock(&lock);
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    frees = held->frees;
    /* The last one that uses it does it. */
    other = frees ? find(*list, held->handle) : NULL;
    if (other) {
        other->frees += frees;
        frees = 0;
    }
    pthread_mutex_unlock(&lock);
    return frees;
}

/* Whether the handle is one that a call uses; then that call frees it. */
static bool leave_to_call(struct collx_held *const *list, uintptr_t handle)
{
    pthread_mutex_lock(&lock);
    struct collx_held *held = find(*list, handle);
    if (held)
        held->frees++;
    pthread_mutex_unlock(&lock);
    return held;
}

void collx_hold_take(struct collx_hold *hold, const struct collx_call *call)
{
    const bool threads = collx_world_has_threads();

    collx_hold_drop(hold);
    hold->type_held = threads && !collx_datatype_predefined((MPI_Datatype)call->datatype);
    hold->op_held = threads && call->op_kind == COLLX_OP_USER;
    if (hold->type_held)
        add(&types, &hold->type, call->datatype);
    if (hold->op_held)
        add(&ops, &hold->op, call->op);
}

/* How often the type and the operation have to be freed now. */
struct frees {
    int types, ops;
};

static struct frees let_go(struct collx_hold *hold)
{
    const struct frees frees = {
        .types = hold->type_held ? remove_from(&types, &hold->type) : 0,
        .ops = hold->op_held ? remove_from(&ops, &hold->op) : 0,
    };

    hold->type_held = hold->op_held = false;
    return frees;
}

void collx_hold_drop(struct collx_hold *hold)
{
    const MPI_Datatype type = (MPI_Datatype)hold->type.handle;
    const MPI_Op op = (MPI_Op)hold->op.handle;
    struct frees frees = let_go(hold);

    for (; frees.types; frees.types--)
        pmpi.Type_free(&(MPI_Datatype){type});
    for (; frees.ops; frees.ops--)
        pmpi.Op_free(&(MPI_Op){op});
}

void collx_hold_forget(struct collx_hold *hold)
{
    let_go(hold);
}

static int type_free(MPI_Datatype *type)
{
    if (!type || !leave_to_call(&types, (uintptr_t)*type))
        return pmpi.Type_free(type);
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

static int op_free(MPI_Op *op)
{
    if (!op || !leave_to_call(&ops, (uintptr_t)*op))
        return pmpi.Op_free(op);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

void collx_hold_install(void)
{
    collx_door.route[COLLX_ENTRY_Type_free] = (void *)type_free;
    collx_door.route[COLLX_ENTRY_Op_free] = (void *)op_free;
}
