! handler_mpif with the module mpi_f08.
module record
  use mpi_f08
  implicit none
  integer :: calls = 0, class = 0
  type(MPI_File) :: seen
contains
  subroutine on_error(file, code)
    type(MPI_File) :: file
    integer :: code
    calls = calls + 1
    seen = file
    call MPI_Error_class(code, class)
  end subroutine
end module
program handler_f08
  use mpi_f08
  use record
  implicit none
  type(MPI_File) :: file
  type(MPI_Errhandler) :: handler
  type(MPI_Status) :: status
  integer :: error, value, rank
  character(len=200) :: path
  call MPI_Init()
  call get_command_argument(1, path)
  call MPI_File_open(MPI_COMM_WORLD, trim(path), &
                     MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
                     MPI_INFO_NULL, file)
  call MPI_File_create_errhandler(on_error, handler)
  call MPI_File_set_errhandler(file, handler, error)
  if (error /= MPI_SUCCESS) print *, "not set"
  call MPI_Errhandler_free(handler)
  call MPI_File_read_at(file, -1_MPI_OFFSET_KIND, value, 1, MPI_INTEGER, status, error)
  if (calls /= 1) print *, "not called", calls
  if (seen%MPI_VAL /= file%MPI_VAL) print *, "another file", seen%MPI_VAL, file%MPI_VAL
  if (class /= MPI_ERR_ARG) print *, "class", class
  call MPI_File_close(file)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank == 0) print *, "No Errors"
  call MPI_Finalize()
end program
