! The Fortran twin of the S3D-like checkpoint kernel: the same grid, options and layout of the
! checkpoint (values may differ in the last bits). It writes in the three ways into one shared file,
! and restarts. See README.md.
module s3d_kernel
  use mpi
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  implicit none

  integer, parameter :: variables = 4, of_variable(variables) = [1, 1, 3, 11], components = 16
  integer, parameter :: header_words = 13
  character(8), parameter :: magic = 'S3Dckpt1'

  type box
    integer :: start(3), count(3)  ! x, y, z; starts count from 0
  end type box

  type kernel
    integer :: comm, rank, ranks, dims(3)
    type(box) :: grid, box
    real(real64), allocatable :: wave(:, :)         ! one period of a sine along each side
    real(real64), allocatable :: field(:, :, :, :)  ! x, y, z, component, as in a checkpoint
    integer(int64) :: step = 0
  end type kernel

contains

  subroutine fail(what, name, why)
    character(*), intent(in) :: what, name, why
    integer :: ierr
    write (error_unit, '(6a)') 's3d: ', what, ' ', trim(name), ': ', trim(why)
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    stop 1
  end subroutine fail

  subroutine check(code, operation, path)
    integer, intent(in) :: code
    character(*), intent(in) :: operation, path
    character(MPI_MAX_ERROR_STRING) :: text
    integer :: length, ierr
    if (code == MPI_SUCCESS) return
    call MPI_Error_string(code, text, length, ierr)
    call fail(operation, path, text(:length))
  end subroutine check

  subroutine init_kernel(k, sides)
    type(kernel), intent(inout) :: k
    integer, intent(in) :: sides(3)
    integer :: dims(3), at(3), ierr
    call MPI_Comm_size(MPI_COMM_WORLD, k%ranks, ierr)
    dims = 0
    call MPI_Dims_create(k%ranks, 3, dims, ierr)
    k%dims = dims  ! most ranks along x
    if (any(sides < k%dims)) &
      call fail('--size', 'of the grid', 'fewer cells than ranks along a side')
    ! Cartesian ranks run fastest along the last dimension: x, as in C.
    call MPI_Cart_create(MPI_COMM_WORLD, 3, k%dims(3:1:-1), [.true., .true., .true.], .false., &
                         k%comm, ierr)
    call MPI_Comm_rank(k%comm, k%rank, ierr)
    call MPI_Cart_coords(k%comm, k%rank, 3, at, ierr)
    at = at(3:1:-1)
    k%grid = box([0, 0, 0], sides)
    k%box%start = int(int(sides, int64) * at / k%dims)
    k%box%count = int(int(sides, int64) * (at + 1) / k%dims) - k%box%start
    allocate (k%field(k%box%count(1), k%box%count(2), k%box%count(3), components))
    call set_up_waves(k)
  end subroutine init_kernel

  subroutine set_up_waves(k)
    type(kernel), intent(inout) :: k
    real(real64), parameter :: two_pi = 2 * acos(-1.0_real64)
    integer :: d, i
    allocate (k%wave(maxval(k%grid%count), 3))
    do d = 1, 3
      k%wave(:, d) = [(sin(two_pi * (i - 0.5_real64) / k%grid%count(d)), i=1, size(k%wave, 1))]
    end do
  end subroutine set_up_waves

  ! The field the kernel must hold: a standing wave, raised by one in every step.
  function exact(k, component) result(values)
    type(kernel), intent(in) :: k
    integer, intent(in) :: component
    real(real64) :: values(k%box%count(1), k%box%count(2), k%box%count(3)), height
    integer :: x, y, z
    do z = 1, k%box%count(3)
      do y = 1, k%box%count(2)
        height = k%wave(k%box%start(3) + z, 3) * k%wave(k%box%start(2) + y, 2)
        values(:, y, z) = [(component - 1 + real(k%step, real64) + &
                            height * k%wave(k%box%start(1) + x, 1), x=1, k%box%count(1))]
      end do
    end do
  end function exact

  subroutine set_to_exact(k)
    type(kernel), intent(inout) :: k
    integer :: c
    do c = 1, components
      k%field(:, :, :, c) = exact(k, c)
    end do
  end subroutine set_to_exact

  subroutine exchange_faces(k, u)
    type(kernel), intent(in) :: k
    real(real64), intent(inout) :: u(0:, 0:, 0:)
    integer :: d, low, high, n, ierr
    do d = 1, 3
      n = k%box%count(d)
      call MPI_Cart_shift(k%comm, 3 - d, 1, low, high, ierr)
      call send_face(1, n + 1, low, high)
      call send_face(n, 0, high, low)
    end do
  contains
    ! Sends layer `inner` to `to` and receives layer `ghost` from the other neighbour.
    subroutine send_face(inner, ghost, to, from)
      integer, intent(in) :: inner, ghost, to, from
      real(real64), allocatable :: face(:, :)
      select case (d)
      case (1); face = u(inner, :, :)
      case (2); face = u(:, inner, :)
      case (3); face = u(:, :, inner)
      end select
      call MPI_Sendrecv_replace(face, size(face), MPI_DOUBLE_PRECISION, to, 0, from, 0, k%comm, &
                                MPI_STATUS_IGNORE, ierr)
      select case (d)
      case (1); u(ghost, :, :) = face
      case (2); u(:, ghost, :) = face
      case (3); u(:, :, ghost) = face
      end select
    end subroutine send_face
  end subroutine exchange_faces

  ! One Jacobi sweep of u_t = laplace(u) - source over one component; the source keeps the wave
  ! standing.
  subroutine relax(k, c)
    type(kernel), intent(inout) :: k
    integer, intent(in) :: c
    real(real64), parameter :: two_pi = 2 * acos(-1.0_real64)
    real(real64), allocatable :: u(:, :, :), wave(:, :, :)
    real(real64) :: eigenvalue
    integer :: nx, ny, nz
    nx = k%box%count(1); ny = k%box%count(2); nz = k%box%count(3)
    allocate (u(0:nx + 1, 0:ny + 1, 0:nz + 1), source=0.0_real64)
    u(1:nx, 1:ny, 1:nz) = k%field(:, :, :, c)
    call exchange_faces(k, u)
    eigenvalue = sum(2 * cos(two_pi / k%grid%count)) - 6
    wave = exact(k, c) - (c - 1 + real(k%step, real64))
    k%field(:, :, :, c) = u(1:nx, 1:ny, 1:nz) + ( &
      u(0:nx - 1, 1:ny, 1:nz) + u(2:nx + 1, 1:ny, 1:nz) + &
      u(1:nx, 0:ny - 1, 1:nz) + u(1:nx, 2:ny + 1, 1:nz) + &
      u(1:nx, 1:ny, 0:nz - 1) + u(1:nx, 1:ny, 2:nz + 1) - &
      6 * u(1:nx, 1:ny, 1:nz) - eigenvalue * wave) / 6
  end subroutine relax

  ! One time step: at least one sweep over all components, and as many as fit into `seconds`.
  subroutine compute(k, seconds)
    type(kernel), intent(inout) :: k
    real(real64), intent(in) :: seconds
    real(real64) :: end_time
    logical :: more
    integer :: c, ierr
    end_time = MPI_Wtime() + seconds
    more = .true.
    do while (more)
      do c = 1, components
        call relax(k, c)
      end do
      more = MPI_Wtime() < end_time
      call MPI_Bcast(more, 1, MPI_LOGICAL, 0, k%comm, ierr)
    end do
    k%field = k%field + 1
    k%step = k%step + 1
  end subroutine compute

  subroutine verify(k, what)
    type(kernel), intent(in) :: k
    character(*), intent(in) :: what
    real(real64) :: mine, worst
    integer :: c, ierr
    mine = 0
    do c = 1, components
      mine = max(mine, maxval(abs(k%field(:, :, :, c) - exact(k, c))))
    end do
    call MPI_Allreduce(mine, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, k%comm, ierr)
    if (k%rank == 0) print '(2a, i0, a, i0, a, es7.1)', what, ': step ', k%step, ' on ', k%ranks, &
      ' ranks, largest error ', worst
    if (.not. worst < 1e-9_real64) &
      call fail('verification', what, 'the fields differ from the exact solution by more than 1e-9')
  end subroutine verify
end module s3d_kernel

module s3d_checkpoint
  use s3d_kernel
  implicit none
  integer, parameter :: read_all = 0, write_alone = 1, write_together = 2
contains

  ! Sets the view of the file to this rank's box of the array that begins at `at`.
  subroutine set_view(k, file, path, at, count)
    type(kernel), intent(in) :: k
    integer, intent(in) :: file, count
    character(*), intent(in) :: path
    integer(MPI_OFFSET_KIND), intent(in) :: at
    integer :: type, ierr
    call MPI_Type_create_subarray(4, [k%grid%count, count], [k%box%count, count], &
                                  [k%box%start, 0], MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, &
                                  type, ierr)
    call MPI_Type_commit(type, ierr)
    call MPI_File_set_view(file, at, MPI_DOUBLE_PRECISION, type, 'native', MPI_INFO_NULL, ierr)
    call check(ierr, 'MPI_File_set_view', path)
    call MPI_Type_free(type, ierr)
  end subroutine set_view

  subroutine move_fields(k, file, path, how)
    type(kernel), intent(inout) :: k
    integer, intent(in) :: file, how
    character(*), intent(in) :: path
    integer(MPI_OFFSET_KIND) :: at
    integer :: v, first, last, n, got, status(MPI_STATUS_SIZE), ierr
    integer(MPI_OFFSET_KIND), parameter :: start = 0
    at = 8 * header_words
    last = 0
    do v = 1, variables
      first = last + 1
      last = last + of_variable(v)
      n = product(k%box%count) * of_variable(v)
      call set_view(k, file, path, at, of_variable(v))
      select case (how)
      case (read_all)
        call MPI_File_read_at_all(file, start, k%field(:, :, :, first:last), n, &
                                  MPI_DOUBLE_PRECISION, status, ierr)
      case (write_together)
        call MPI_File_write_at_all(file, start, k%field(:, :, :, first:last), n, &
                                   MPI_DOUBLE_PRECISION, status, ierr)
      case (write_alone)
        call MPI_File_write_at(file, start, k%field(:, :, :, first:last), n, &
                               MPI_DOUBLE_PRECISION, status, ierr)
      end select
      call check(ierr, 'read or write of an array in', path)
      call MPI_Get_count(status, MPI_DOUBLE_PRECISION, got, ierr)
      if (got /= n) call fail('read or write of an array in', path, 'the file ends too early')
      at = at + 8_MPI_OFFSET_KIND * of_variable(v) * product(int(k%grid%count, MPI_OFFSET_KIND))
    end do
  end subroutine move_fields

  subroutine write_header(k, file, path)
    type(kernel), intent(in) :: k
    integer, intent(in) :: file
    character(*), intent(in) :: path
    integer(int64) :: words(header_words)
    integer :: ierr
    words(1) = transfer(magic, words(1))
    words(2:4) = k%grid%count(3:1:-1)
    words(5:7) = 0
    words(8:10) = k%grid%count(3:1:-1)
    words(11:13) = [1_int64, k%step, transfer(1e-6_real64 * real(k%step, real64), 1_int64)]
    call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, words, header_words, MPI_INTEGER8, &
                           MPI_STATUS_IGNORE, ierr)
    call check(ierr, 'write of the header of', path)
  end subroutine write_header

  subroutine write_checkpoint(k, mode, directory)
    type(kernel), intent(inout) :: k
    character(*), intent(in) :: mode, directory
    character(4096) :: path
    real(real64) :: begin
    integer :: file, info, ierr
    write (path, '(2a, i4.4, a)') trim(directory), '/s3d-', k%step, '.ckpt'
    begin = MPI_Wtime()
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, 'romio_ds_write', merge('enable ', 'disable', mode == 'sieving'), ierr)
    call MPI_Info_set(info, 'romio_cb_write', merge('enable ', 'disable', mode == 'collective'), &
                      ierr)
    call MPI_Info_set(info, 'ind_wr_buffer_size', '4194304', ierr)
    call MPI_File_open(k%comm, path, MPI_MODE_CREATE + MPI_MODE_RDWR, info, file, ierr)
    call check(ierr, 'MPI_File_open', path)
    call MPI_Info_free(info, ierr)
    call MPI_File_set_size(file, 0_MPI_OFFSET_KIND, ierr)
    call check(ierr, 'MPI_File_set_size', path)
    if (k%rank == 0) call write_header(k, file, path)
    call move_fields(k, file, path, merge(write_together, write_alone, mode == 'collective'))
    call MPI_File_close(file, ierr)
    call check(ierr, 'MPI_File_close', path)
    if (k%rank == 0) print '(a, i0, 3a, f0.3, 3a)', 'step ', k%step, ' to ', trim(path), ' in ', &
      MPI_Wtime() - begin, ' s (', trim(mode), ')'
  end subroutine write_checkpoint

  ! Initialises the kernel from a checkpoint; each rank reads its own box, for any number of ranks
  ! at the save.
  subroutine restart_from(k, path)
    type(kernel), intent(inout) :: k
    character(*), intent(in) :: path
    integer(int64) :: words(header_words)
    character(8) :: found
    integer :: file, ierr
    call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
    call check(ierr, 'MPI_File_open', path)
    words = 0
    call MPI_File_read_at_all(file, 0_MPI_OFFSET_KIND, words, header_words, MPI_INTEGER8, &
                              MPI_STATUS_IGNORE, ierr)
    call check(ierr, 'read of the header of', path)
    found = transfer(words(1), found)
    if (found /= magic .or. words(11) /= 1) &
      call fail('--restart', path, 'not a checkpoint of s3d in one file')
    call init_kernel(k, int(words(4:2:-1)))
    k%step = words(12)
    call move_fields(k, file, path, read_all)
    call MPI_File_close(file, ierr)
    call check(ierr, 'MPI_File_close', path)
  end subroutine restart_from
end module s3d_checkpoint

program s3d
  use s3d_checkpoint
  implicit none
  type(kernel) :: k
  character(4096) :: directory = '.', restart = '', mode = 'collective'
  integer :: sides(3) = [64, 64, 64], steps = -1, step, ierr
  real(real64) :: seconds = 0

  call MPI_Init(ierr)
  call parse_arguments
  if (restart /= '') then
    call restart_from(k, trim(restart))
    call verify(k, 'restart')
  else
    call init_kernel(k, sides)
    call set_to_exact(k)
  end if
  if (steps < 0) steps = merge(0, 1, restart /= '')
  do step = 1, steps
    call compute(k, seconds)
    call write_checkpoint(k, trim(mode), trim(directory))
  end do
  call verify(k, 'end')
  call MPI_Finalize(ierr)

contains

  subroutine parse_arguments
    character(4096) :: option, value
    integer :: i, failed
    do i = 1, command_argument_count(), 2
      call get_command_argument(i, option)
      call get_command_argument(i + 1, value)
      failed = merge(1, 0, value == '')
      select case (option)
      case ('--size')
        call parse_size(value, failed)
      case ('--steps')
        read (value, *, iostat=failed) steps
      case ('--compute')
        read (value, *, iostat=failed) seconds
      case ('--write')
        mode = value
        if (all(mode /= ['independent', 'sieving    ', 'collective '])) failed = 1
      case ('--dir')
        directory = value
      case ('--restart')
        restart = value
      case default
        failed = 1
      end select
      if (failed /= 0) call usage_error(option, value)
    end do
  end subroutine parse_arguments

  subroutine parse_size(text, failed)
    character(*), intent(in) :: text
    integer, intent(out) :: failed
    character(len(text)) :: numbers
    integer :: i
    numbers = text
    do i = 1, len_trim(text)
      if (text(i:i) == 'x') numbers(i:i) = ' '
    end do
    read (numbers, *, iostat=failed) sides
    if (any(sides < 1)) failed = 1
  end subroutine parse_size

  subroutine usage_error(option, value)
    character(*), intent(in) :: option, value
    integer :: rank
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    if (rank == 0) write (error_unit, '(5a)') 's3d: ', trim(option), ' ', trim(value), &
      ': expected --size NXxNYxNZ, --steps N, '// &
      '--compute SECONDS, --write independent|sieving|collective, --dir DIRECTORY, --restart FILE'
    call MPI_Finalize(ierr)
    stop 2
  end subroutine usage_error
end program s3d
