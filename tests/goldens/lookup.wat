(module
  (type (;0;) (func (param i32 i32 i32)))
  (type (;1;) (func))
  (import "env" "memory" (memory (;0;) 1))
  (func (;0;) (type 0) (param i32 i32 i32)
    (local i32 i32 i32 v128 i32 i32 v128 v128 v128 v128 v128 v128 v128 v128)
    i32.const 0
    local.set 3
    block  ;; label = @1
      loop  ;; label = @2
        local.get 3
        i32.const 3
        i32.lt_s
        i32.eqz
        br_if 1 (;@1;)
        i32.const 0
        local.set 4
        local.get 1
        local.get 0
        local.get 3
        i32.const 2
        i32.shl
        i32.add
        v128.load32_splat
        local.tee 6
        i32x4.extract_lane 0
        i32.const 4
        i32.mul
        local.get 4
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 5
        local.get 2
        local.get 3
        i32.const 4
        i32.mul
        local.get 4
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 7
        i32.const 0
        local.set 8
        block  ;; label = @3
          loop  ;; label = @4
            local.get 8
            i32.const 0
            i32.le_s
            i32.eqz
            br_if 1 (;@3;)
            v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
            local.get 6
            i32x4.extract_lane 0
            i32.const 10
            i32.lt_u
            if (result v128)  ;; label = @5
              local.get 5
              v128.load align=4
            else
              v128.const i32x4 0x7fc00000 0x7fc00000 0x7fc00000 0x7fc00000
            end
            local.tee 9
            f32x4.abs
            v128.const i32x4 0xc0000000 0xc0000000 0xc0000000 0xc0000000
            f32x4.mul
            v128.const i32x4 0xc2200000 0xc2200000 0xc2200000 0xc2200000
            f32x4.max
            local.tee 10
            v128.const i32x4 0x3fb8aa3b 0x3fb8aa3b 0x3fb8aa3b 0x3fb8aa3b
            f32x4.mul
            v128.const i32x4 0x4b400000 0x4b400000 0x4b400000 0x4b400000
            f32x4.add
            local.tee 11
            i32.const 23
            i32x4.shl
            v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
            i32x4.add
            local.tee 12
            f32x4.sub
            local.get 12
            local.get 10
            local.get 11
            v128.const i32x4 0x4b400000 0x4b400000 0x4b400000 0x4b400000
            f32x4.sub
            local.tee 13
            v128.const i32x4 0x3f318000 0x3f318000 0x3f318000 0x3f318000
            f32x4.mul
            f32x4.sub
            local.get 13
            v128.const i32x4 0xb95e8083 0xb95e8083 0xb95e8083 0xb95e8083
            f32x4.mul
            f32x4.sub
            local.tee 14
            local.get 14
            local.get 14
            f32x4.mul
            v128.const i32x4 0x3f000000 0x3f000000 0x3f000000 0x3f000000
            v128.const i32x4 0x3e2aaa6e 0x3e2aaa6e 0x3e2aaa6e 0x3e2aaa6e
            v128.const i32x4 0x3d2aaa5c 0x3d2aaa5c 0x3d2aaa5c 0x3d2aaa5c
            v128.const i32x4 0x3c0905f3 0x3c0905f3 0x3c0905f3 0x3c0905f3
            v128.const i32x4 0x3ab6baf6 0x3ab6baf6 0x3ab6baf6 0x3ab6baf6
            local.get 14
            f32x4.mul
            f32x4.add
            local.get 14
            f32x4.mul
            f32x4.add
            local.get 14
            f32x4.mul
            f32x4.add
            local.get 14
            f32x4.mul
            f32x4.add
            f32x4.mul
            f32x4.add
            f32x4.mul
            f32x4.sub
            local.tee 15
            v128.const i32x4 0x40000000 0x40000000 0x40000000 0x40000000
            local.get 15
            f32x4.sub
            f32x4.div
            local.get 9
            v128.const i32x4 0x80000000 0x80000000 0x80000000 0x80000000
            v128.and
            v128.or
            local.set 16
            local.get 7
            local.get 16
            v128.store align=4
            local.get 5
            i32.const 16
            i32.add
            local.set 5
            local.get 7
            i32.const 16
            i32.add
            local.set 7
            local.get 8
            i32.const 4
            i32.add
            local.set 8
            br 0 (;@4;)
          end
        end
        local.get 3
        i32.const 1
        i32.add
        local.set 3
        br 0 (;@2;)
      end
    end)
  (func (;1;) (type 1)
    i32.const 256
    i32.const 0
    i32.const 192
    call 0)
  (func (;2;) (type 1)
    call 1)
  (export "run" (func 2)))
