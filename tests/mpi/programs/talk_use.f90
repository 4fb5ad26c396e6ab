! talk_mpif with the module mpi.
program talk_use
  use mpi
  implicit none
  integer :: ierror, rank, ranks, comm, handle, status(MPI_STATUS_SIZE)
  integer(kind=MPI_OFFSET_KIND) :: offset
  real(8) :: values(100)
  character(len=4096) :: path
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  values = rank
  call MPI_Bcast(values, 10, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
  call MPI_Allreduce(MPI_IN_PLACE, values, 20, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
                     ierror)
  if (rank == 0) call MPI_Send(values, 30, MPI_DOUBLE_PRECISION, 1, 5, MPI_COMM_WORLD, ierror)
  if (rank == 1) call MPI_Recv(values, 30, MPI_DOUBLE_PRECISION, 0, 5, MPI_COMM_WORLD, status, &
                               ierror)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, comm, ierror)
  call MPI_Barrier(comm, ierror)
  call get_command_argument(1, path)
  call MPI_File_open(comm, trim(path)//'/out.bin', MPI_MODE_CREATE + MPI_MODE_RDWR, &
                     MPI_INFO_NULL, handle, ierror)
  offset = int(rank, MPI_OFFSET_KIND) * 800
  call MPI_File_write_at_all(handle, offset, values, 100, MPI_DOUBLE_PRECISION, &
                             MPI_STATUS_IGNORE, ierror)
  call MPI_File_sync(handle, ierror)
  call MPI_Barrier(comm, ierror)
  call MPI_File_read_at(handle, offset, values, 100, MPI_DOUBLE_PRECISION, status, ierror)
  call MPI_File_close(handle, ierror)
  call MPI_Comm_free(comm, ierror)
  call MPI_Finalize(ierror)
end program talk_use
