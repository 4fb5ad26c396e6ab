! The twin of checkpoint.c: it writes the same file, and each program loads the other's file. Axes
! are in Fortran's order, x fastest.
program checkpoint
  use mpi_f08
  use hdf5
  use h5ds
  implicit none
  integer, parameter :: cell = kind(1d0), axes = 3, grid(axes) = [40, 30, 20]
  character(1), parameter :: names(axes) = ['x', 'y', 'z']
  character(4096) :: action, path
  integer :: begin(axes), cells(axes), rank, ranks, mine, wrong, error
  integer(8) :: step = 2
  real(cell) :: time = 0.25_cell
  integer(mpi_offset_kind) :: places(2)
  real(cell), allocatable :: temperature(:, :, :) ! with a layer of ghost cells
  integer, allocatable :: phase(:, :, :)

  call mpi_init(error)
  call get_command_argument(1, action)
  call get_command_argument(2, path)
  call h5open_f(error)
  call set_up
  mine = 0
  if (action == 'save') then
    call set_cells
    call save
  else if (action == 'load') then
    call load
    mine = wrong_cells()
  else
    call fail('usage', 'mpiexec -n RANKS checkpoint_f90 save|load FILE')
  end if
  call mpi_reduce(mine, wrong, 1, mpi_integer, mpi_sum, 0, mpi_comm_world, error)
  if (rank == 0) print '(a, a, i0, a, f4.2, a, i0, a, i0, a)', &
    trim(path), ': step ', step, ', time ', time, ', ', ranks, ' ranks, ', wrong, ' wrong'
  call h5close_f(error)
  call mpi_finalize(error)

contains

  subroutine fail(operation, why)
    character(*), intent(in) :: operation, why
    write (*, '(4a)') operation, ': ', why
    call mpi_abort(mpi_comm_world, 1, error)
  end subroutine

  ! HDF5 and MPI have other codes of success; HDF5 prints why it failed.
  subroutine check(code, operation)
    integer, intent(in) :: code
    character(*), intent(in) :: operation
    if (code /= 0) call fail(operation, trim(path)//' failed')
  end subroutine

  subroutine set_up
    integer :: dims(axes), at(axes)
    dims = 0
    call mpi_comm_size(mpi_comm_world, ranks, error)
    call mpi_comm_rank(mpi_comm_world, rank, error)
    call mpi_dims_create(ranks, axes, dims, error)
    at = [rank/dims(2)/dims(3), mod(rank/dims(3), dims(2)), mod(rank, dims(3))]
    begin = grid*at/dims
    cells = grid*(at + 1)/dims - begin
    allocate (temperature(0:cells(1) + 1, 0:cells(2) + 1, 0:cells(3) + 1))
    allocate (phase(cells(1), cells(2), cells(3)))
  end subroutine

  pure real(cell) function temperature_at(x, y, z)
    integer, intent(in) :: x, y, z
    temperature_at = 0.5_cell + x + 40*(y + 30._cell*z)
  end function

  pure integer function phase_at(x, y, z)
    integer, intent(in) :: x, y, z
    phase_at = mod(x + 2*y + 3*z, 7)
  end function

  subroutine set_cells
    integer :: x, y, z
    do concurrent (z=1:cells(3), y=1:cells(2), x=1:cells(1))
      temperature(x, y, z) = temperature_at(begin(1) + x - 1, begin(2) + y - 1, begin(3) + z - 1)
      phase(x, y, z) = phase_at(begin(1) + x - 1, begin(2) + y - 1, begin(3) + z - 1)
    end do
  end subroutine

  integer function wrong_cells() result(count)
    integer :: x, y, z, at(axes)
    count = 0
    do z = 1, cells(3)
      do y = 1, cells(2)
        do x = 1, cells(1)
          at = begin + [x, y, z] - 1
          if (temperature(x, y, z) /= temperature_at(at(1), at(2), at(3)) .or. &
              phase(x, y, z) /= phase_at(at(1), at(2), at(3))) count = count + 1
        end do
      end do
    end do
  end function

  ! --- the file without the bytes of its arrays: rank 0, serial HDF5 ---

  ! The dataset that names an axis, as netCDF-4 has it; it holds nothing.
  subroutine make_axis(file, axis)
    integer(hid_t), intent(in) :: file
    integer, intent(in) :: axis
    integer(hid_t) :: space, scale
    character(80) :: text
    call h5screate_simple_f(1, int(grid(axis:axis), hsize_t), space, error)
    call h5dcreate_f(file, names(axis), h5t_ieee_f32be, space, scale, error)
    write (text, '(a, i10)') 'This is a netCDF dimension but not a netCDF variable.', grid(axis)
    call h5dsset_scale_f(scale, error, trim(text))
    call h5dclose_f(scale, error)
    call h5sclose_f(space, error)
  end subroutine

  subroutine name_axes(file, dataset)
    integer(hid_t), intent(in) :: file, dataset
    integer(hid_t) :: scale
    integer :: axis
    do axis = 1, axes
      call h5dopen_f(file, names(axis), scale, error)
      ! HDF5 counts axes in the order of C, the slowest first.
      call h5dsattach_scale_f(dataset, scale, axes + 1 - axis, error)
      call h5dclose_f(scale, error)
    end do
  end subroutine

  ! Allocates an array early and contiguously, so that its offset is known; without filling it.
  integer(mpi_offset_kind) function make_array(file, name, kind) result(place)
    integer(hid_t), intent(in) :: file, kind
    character(*), intent(in) :: name
    integer(hid_t) :: space, made, dataset
    integer(haddr_t) :: offset
    call h5screate_simple_f(axes, int(grid, hsize_t), space, error)
    call h5pcreate_f(h5p_dataset_create_f, made, error)
    call h5pset_layout_f(made, h5d_contiguous_f, error)
    call h5pset_alloc_time_f(made, h5d_alloc_time_early_f, error)
    call h5pset_fill_time_f(made, h5d_fill_time_never_f, error)
    call h5dcreate_f(file, name, kind, space, dataset, error, made)
    call check(error, 'h5dcreate_f')
    call name_axes(file, dataset)
    call h5dget_offset_f(dataset, offset, error)
    place = offset
    call h5dclose_f(dataset, error)
    call h5pclose_f(made, error)
    call h5sclose_f(space, error)
  end function

  subroutine make_file(part)
    character(*), intent(in) :: part
    integer(hsize_t), parameter :: mib = 1048576
    integer(hid_t) :: access, file
    integer :: axis
    call h5pcreate_f(h5p_file_access_f, access, error)
    ! Large arrays begin at multiples of stripes and lock blocks.
    call h5pset_alignment_f(access, mib, mib, error)
    call h5fcreate_f(part, h5f_acc_trunc_f, file, error, access_prp=access)
    call check(error, 'h5fcreate_f')
    do axis = 1, axes
      call make_axis(file, axis)
    end do
    places = [make_array(file, 'temperature', h5t_ieee_f64le), &
              make_array(file, 'phase', h5t_std_i32le)]
    call put_moment(file)
    call h5fclose_f(file, error)
    call check(error, 'h5fclose_f')
    call h5pclose_f(access, error)
  end subroutine

  subroutine put_moment(file)
    integer(hid_t), intent(in) :: file
    integer(hid_t) :: scalar, attribute
    integer(hsize_t), parameter :: one(1) = 1
    call h5screate_f(h5s_scalar_f, scalar, error)
    call h5acreate_f(file, 'step', h5t_std_i64le, scalar, attribute, error)
    call h5awrite_f(attribute, h5kind_to_type(8, h5_integer_kind), step, one, error)
    call h5aclose_f(attribute, error)
    call h5acreate_f(file, 'time', h5t_ieee_f64le, scalar, attribute, error)
    call h5awrite_f(attribute, h5t_native_double, time, one, error)
    call h5aclose_f(attribute, error)
    call h5sclose_f(scalar, error)
  end subroutine

  ! --- the bytes: all ranks, MPI-IO ---

  ! This rank's part of an array of such lengths.
  type(mpi_datatype) function part_of(lengths, first, element) result(part)
    integer, intent(in) :: lengths(axes), first(axes)
    type(mpi_datatype), intent(in) :: element
    call mpi_type_create_subarray(axes, lengths, cells, first, mpi_order_fortran, element, part, &
                                  error)
    call mpi_type_commit(part, error)
  end function

  subroutine set_view(file, place, element)
    type(mpi_file), intent(in) :: file
    integer(mpi_offset_kind), intent(in) :: place
    type(mpi_datatype), intent(in) :: element
    type(mpi_datatype) :: in_file
    in_file = part_of(grid, begin, element)
    call mpi_file_set_view(file, place, element, in_file, 'native', mpi_info_null, error)
    call check(error, 'mpi_file_set_view')
    call mpi_type_free(in_file, error)
  end subroutine

  subroutine save
    integer(mpi_offset_kind), parameter :: start = 0
    type(mpi_file) :: file
    type(mpi_datatype) :: inner
    if (rank == 0) call make_file(trim(path)//'.part')
    call mpi_bcast(places, 2, mpi_offset, 0, mpi_comm_world, error)
    call mpi_file_open(mpi_comm_world, trim(path)//'.part', mpi_mode_wronly, mpi_info_null, file, &
                       error)
    call check(error, 'mpi_file_open')
    inner = part_of(cells + 2, [1, 1, 1], mpi_double_precision)
    call set_view(file, places(1), mpi_double_precision)
    call mpi_file_write_at_all(file, start, temperature, 1, inner, mpi_status_ignore, error)
    call check(error, 'mpi_file_write_at_all')
    call set_view(file, places(2), mpi_integer4)
    call mpi_file_write_at_all(file, start, phase, size(phase), mpi_integer4, mpi_status_ignore, &
                               error)
    call check(error, 'mpi_file_write_at_all')
    call mpi_file_sync(file, error)
    call check(error, 'mpi_file_sync')
    call mpi_file_close(file, error) ! collective: all have written then
    if (rank == 0) call rename(trim(path)//'.part', trim(path), error)
    if (rank == 0) call check(error, 'rename')
    call mpi_barrier(mpi_comm_world, error)
    call mpi_type_free(inner, error)
  end subroutine

  ! --- and back ---

  subroutine find_arrays
    integer(hid_t) :: file, attribute
    integer(hsize_t), parameter :: one(1) = 1
    call h5fopen_f(trim(path), h5f_acc_rdonly_f, file, error)
    call check(error, 'h5fopen_f')
    places = [place_of(file, 'temperature'), place_of(file, 'phase')]
    call h5aopen_f(file, 'step', attribute, error)
    call h5aread_f(attribute, h5kind_to_type(8, h5_integer_kind), step, one, error)
    call check(error, 'h5aread_f')
    call h5aclose_f(attribute, error)
    call h5fclose_f(file, error)
  end subroutine

  integer(mpi_offset_kind) function place_of(file, name) result(place)
    integer(hid_t), intent(in) :: file
    character(*), intent(in) :: name
    integer(hid_t) :: dataset
    integer(haddr_t) :: offset
    call h5dopen_f(file, name, dataset, error)
    call check(error, 'h5dopen_f')
    call h5dget_offset_f(dataset, offset, error)
    if (offset < 0) call fail(name, 'its bytes do not lie in one piece')
    place = offset
    call h5dclose_f(dataset, error)
  end function

  subroutine load
    integer(mpi_offset_kind), parameter :: start = 0
    type(mpi_file) :: file
    type(mpi_datatype) :: inner
    if (rank == 0) call find_arrays
    call mpi_bcast(places, 2, mpi_offset, 0, mpi_comm_world, error)
    call mpi_file_open(mpi_comm_world, trim(path), mpi_mode_rdonly, mpi_info_null, file, error)
    call check(error, 'mpi_file_open')
    inner = part_of(cells + 2, [1, 1, 1], mpi_double_precision)
    call set_view(file, places(1), mpi_double_precision)
    call mpi_file_read_at_all(file, start, temperature, 1, inner, mpi_status_ignore, error)
    call check(error, 'mpi_file_read_at_all')
    call set_view(file, places(2), mpi_integer4)
    call mpi_file_read_at_all(file, start, phase, size(phase), mpi_integer4, mpi_status_ignore, &
                              error)
    call check(error, 'mpi_file_read_at_all')
    call mpi_file_close(file, error)
    call mpi_type_free(inner, error)
  end subroutine
end program
