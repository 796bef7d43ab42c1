! The Fortran part of the test that every call is seen exactly once: the same calls as once.c,
! through the binding that the macro BINDING_... names.
program once
#if defined(BINDING_F08)
    use mpi_f08
    implicit none
    type(MPI_Request) :: request
#elif defined(BINDING_MODULE)
    use mpi
    implicit none
    integer :: request
#else
    implicit none
    include 'mpif.h'
    integer :: request
#endif
    integer :: rank, ranks, error, i, k
    integer :: val(4), total(4), from(64), to(64)
#if defined(LARGE_COUNTS)
    integer(kind=MPI_COUNT_KIND) :: large
#endif

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)

    do i = 0, 10
        call MPI_Barrier(MPI_COMM_WORLD, error)
    end do
    do i = 0, 12
        val = -1
        if (rank == mod(i, ranks)) val = [(100 * i + k, k = 0, 3)]
        call MPI_Bcast(val, 4, MPI_INTEGER, mod(i, ranks), MPI_COMM_WORLD, error)
        call check(all(val == [(100 * i + k, k = 0, 3)]), 'Bcast')
    end do
    do i = 0, 16
        val = [(rank + i + k, k = 0, 3)]
        total = val
        if (mod(i, 2) == 1) then
            call MPI_Allreduce(MPI_IN_PLACE, total, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
        else
            call MPI_Allreduce(val, total, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
        end if
        call check(all(total == [(ranks * (ranks - 1) / 2 + ranks * (i + k), k = 0, 3)]), 'Allreduce')
    end do
    do i = 0, 4
        val(1) = rank
        call MPI_Gather(val, 1, MPI_INTEGER, to, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
        if (rank == 0) call check(all(to(:ranks) == [(k, k = 0, ranks - 1)]), 'Gather')
    end do
    do i = 0, 2
        from(:ranks) = [(1000 * rank + k, k = 0, ranks - 1)]
        call MPI_Alltoall(from, 1, MPI_INTEGER, to, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
        call check(all(to(:ranks) == [(1000 * k + rank, k = 0, ranks - 1)]), 'Alltoall')
    end do
    do i = 0, 1
        val(1) = 0
        if (rank == 0) val(1) = i + 7
        call MPI_Ibcast(val, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request, error)
        call MPI_Wait(request, MPI_STATUS_IGNORE, error)
        call check(val(1) == i + 7, 'Ibcast')
    end do
#if defined(LARGE_COUNTS)
    large = 1
    do i = 0, 6
        val = -1
        if (rank == mod(1, ranks)) val = i
        call MPI_Bcast(val, large, MPI_INTEGER, mod(1, ranks), MPI_COMM_WORLD, error)
        call check(val(1) == i, 'Bcast, large count')
    end do
    do i = 0, 5
        val = rank
        call MPI_Allreduce(val, total, large, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
        call check(total(1) == ranks - 1, 'Allreduce, large count')
    end do
#endif
    call MPI_Finalize(error)

contains
    subroutine check(good, what)
        logical, intent(in) :: good
        character(*), intent(in) :: what

        if (good) return
        print *, 'wrong result of ', what
        error stop 1
    end subroutine
end program
