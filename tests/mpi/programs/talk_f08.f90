! talk_mpif with the module mpi_f08.
program talk_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks
  type(MPI_Comm) :: comm
  type(MPI_File) :: handle
  type(MPI_Status) :: status
  integer(kind=MPI_OFFSET_KIND) :: offset
  real(8) :: values(100)
  character(len=4096) :: path
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  values = rank
  call MPI_Bcast(values, 10, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, values, 20, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) call MPI_Send(values, 30, MPI_DOUBLE_PRECISION, 1, 5, MPI_COMM_WORLD)
  if (rank == 1) call MPI_Recv(values, 30, MPI_DOUBLE_PRECISION, 0, 5, MPI_COMM_WORLD, status)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, comm)
  call MPI_Barrier(comm)
  call get_command_argument(1, path)
  call MPI_File_open(comm, trim(path)//'/out.bin', MPI_MODE_CREATE + MPI_MODE_RDWR, &
                     MPI_INFO_NULL, handle)
  offset = int(rank, MPI_OFFSET_KIND) * 800
  call MPI_File_write_at_all(handle, offset, values, 100, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE)
  call MPI_File_sync(handle)
  call MPI_Barrier(comm)
  call MPI_File_read_at(handle, offset, values, 100, MPI_DOUBLE_PRECISION, status)
  call MPI_File_close(handle)
  call MPI_Comm_free(comm)
  call MPI_Finalize()
end program talk_f08
