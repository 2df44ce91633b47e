(module
  (type (;0;) (func (param i32 i32)))
  (type (;1;) (func (param i32 i32 i32 i32 i32 i32 i32)))
  (type (;2;) (func))
  (import "env" "memory" (memory (;0;) 1))
  (func (;0;) (type 0) (param i32 i32)
    (local v128 v128 v128 v128 i32 i32 i32 i32 v128 v128)
    i32.const 0
    local.set 6
    block  ;; label = @1
      loop  ;; label = @2
        local.get 6
        i32.const 6
        i32.lt_s
        i32.eqz
        br_if 1 (;@1;)
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        local.set 2
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        local.set 3
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        local.set 4
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        local.set 5
        i32.const 0
        local.set 7
        local.get 0
        local.get 6
        i32.const 20
        i32.mul
        local.get 7
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 8
        i32.const 0
        local.set 9
        block  ;; label = @3
          loop  ;; label = @4
            local.get 9
            i32.const 4
            i32.le_s
            i32.eqz
            br_if 1 (;@3;)
            local.get 2
            local.get 8
            v128.load align=4
            f32x4.add
            local.set 2
            local.get 3
            local.get 8
            v128.load offset=16 align=4
            f32x4.add
            local.set 3
            local.get 4
            local.get 8
            v128.load offset=32 align=4
            f32x4.add
            local.set 4
            local.get 5
            local.get 8
            v128.load offset=48 align=4
            f32x4.add
            local.set 5
            local.get 8
            i32.const 64
            i32.add
            local.set 8
            local.get 9
            i32.const 16
            i32.add
            local.set 9
            br 0 (;@4;)
          end
        end
        block  ;; label = @3
          loop  ;; label = @4
            local.get 9
            i32.const 16
            i32.le_s
            i32.eqz
            br_if 1 (;@3;)
            local.get 2
            local.get 8
            v128.load align=4
            f32x4.add
            local.set 2
            local.get 8
            i32.const 16
            i32.add
            local.set 8
            local.get 9
            i32.const 4
            i32.add
            local.set 9
            br 0 (;@4;)
          end
        end
        local.get 2
        local.get 3
        f32x4.add
        local.get 4
        local.get 5
        f32x4.add
        f32x4.add
        local.set 10
        local.get 10
        local.get 10
        local.get 10
        i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7
        f32x4.add
        local.set 10
        local.get 10
        local.get 10
        local.get 10
        i8x16.shuffle 4 5 6 7 8 9 10 11 12 13 14 15 0 1 2 3
        f32x4.add
        local.set 10
        local.get 10
        local.set 11
        local.get 1
        local.get 6
        i32.const 2
        i32.shl
        i32.add
        local.get 11
        v128.store32_lane 0
        local.get 6
        i32.const 1
        i32.add
        local.set 6
        br 0 (;@2;)
      end
    end)
  (func (;1;) (type 1) (param i32 i32 i32 i32 i32 i32 i32)
    (local i32 i32 i32 i32 i32 i32 i32 i32 i32 v128)
    i32.const 0
    local.set 7
    local.get 0
    local.get 7
    i32.const 2
    i32.shl
    i32.add
    local.set 8
    local.get 1
    local.get 7
    i32.const 2
    i32.shl
    i32.add
    local.set 9
    local.get 2
    local.get 7
    i32.const 2
    i32.shl
    i32.add
    local.set 10
    local.get 3
    local.get 7
    i32.const 2
    i32.shl
    i32.add
    local.set 11
    local.get 4
    local.get 7
    i32.const 2
    i32.shl
    i32.add
    local.set 12
    local.get 5
    local.get 7
    i32.const 2
    i32.shl
    i32.add
    local.set 13
    local.get 6
    local.get 7
    i32.const 2
    i32.shl
    i32.add
    local.set 14
    i32.const 0
    local.set 15
    block  ;; label = @1
      loop  ;; label = @2
        local.get 15
        i32.const 16
        i32.le_s
        i32.eqz
        br_if 1 (;@1;)
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        local.get 8
        v128.load align=4
        f32x4.add
        local.get 9
        v128.load align=4
        f32x4.add
        local.get 10
        v128.load align=4
        f32x4.add
        local.get 11
        v128.load align=4
        f32x4.add
        local.get 12
        v128.load align=4
        f32x4.add
        local.get 13
        v128.load align=4
        f32x4.add
        local.set 16
        local.get 14
        local.get 16
        v128.store align=4
        local.get 8
        i32.const 16
        i32.add
        local.set 8
        local.get 9
        i32.const 16
        i32.add
        local.set 9
        local.get 10
        i32.const 16
        i32.add
        local.set 10
        local.get 11
        i32.const 16
        i32.add
        local.set 11
        local.get 12
        i32.const 16
        i32.add
        local.set 12
        local.get 13
        i32.const 16
        i32.add
        local.set 13
        local.get 14
        i32.const 16
        i32.add
        local.set 14
        local.get 15
        i32.const 4
        i32.add
        local.set 15
        br 0 (;@2;)
      end
    end)
  (func (;2;) (type 0) (param i32 i32)
    (local i32 v128 i32 i32 i32 i32 v128 v128 v128 i32 i32 i32 i32 v128)
    i32.const 0
    local.set 2
    block  ;; label = @1
      loop  ;; label = @2
        local.get 2
        i32.const 2
        i32.le_s
        i32.eqz
        br_if 1 (;@1;)
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        local.set 3
        i32.const 0
        local.set 4
        local.get 0
        local.get 2
        i32.const 20
        i32.mul
        local.get 4
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 5
        local.get 1
        local.get 2
        i32.const 20
        i32.mul
        local.get 4
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 6
        i32.const 0
        local.set 7
        block  ;; label = @3
          loop  ;; label = @4
            local.get 7
            i32.const 19
            i32.le_s
            i32.eqz
            br_if 1 (;@3;)
            local.get 3
            v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
            local.set 8
            local.get 5
            local.get 8
            v128.load32_lane 0
            local.set 8
            local.get 5
            local.get 8
            v128.load32_lane offset=80 1
            local.set 8
            local.get 5
            local.get 8
            v128.load32_lane offset=160 2
            local.set 8
            local.get 5
            local.get 8
            v128.load32_lane offset=240 3
            local.set 8
            local.get 8
            f32x4.add
            local.set 3
            local.get 3
            local.set 9
            local.get 6
            local.get 9
            v128.store32_lane 0
            local.get 6
            local.get 9
            v128.store32_lane offset=80 1
            local.get 6
            local.get 9
            v128.store32_lane offset=160 2
            local.get 6
            local.get 9
            v128.store32_lane offset=240 3
            local.get 5
            i32.const 4
            i32.add
            local.set 5
            local.get 6
            i32.const 4
            i32.add
            local.set 6
            local.get 7
            i32.const 1
            i32.add
            local.set 7
            br 0 (;@4;)
          end
        end
        local.get 2
        i32.const 4
        i32.add
        local.set 2
        br 0 (;@2;)
      end
    end
    block  ;; label = @1
      loop  ;; label = @2
        local.get 2
        i32.const 5
        i32.le_s
        i32.eqz
        br_if 1 (;@1;)
        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
        local.set 10
        i32.const 0
        local.set 11
        local.get 0
        local.get 2
        i32.const 20
        i32.mul
        local.get 11
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 12
        local.get 1
        local.get 2
        i32.const 20
        i32.mul
        local.get 11
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 13
        i32.const 0
        local.set 14
        block  ;; label = @3
          loop  ;; label = @4
            local.get 14
            i32.const 19
            i32.le_s
            i32.eqz
            br_if 1 (;@3;)
            local.get 10
            local.get 12
            v128.load32_zero
            f32x4.add
            local.set 10
            local.get 10
            local.set 15
            local.get 13
            local.get 15
            v128.store32_lane 0
            local.get 12
            i32.const 4
            i32.add
            local.set 12
            local.get 13
            i32.const 4
            i32.add
            local.set 13
            local.get 14
            i32.const 1
            i32.add
            local.set 14
            br 0 (;@4;)
          end
        end
        local.get 2
        i32.const 1
        i32.add
        local.set 2
        br 0 (;@2;)
      end
    end)
  (func (;3;) (type 2)
    i32.const 0
    i32.const 640
    call 0
    i32.const 0
    i32.const 80
    i32.const 160
    i32.const 240
    i32.const 320
    i32.const 400
    i32.const 512
    call 1
    i32.const 0
    i32.const 0
    call 2)
  (func (;4;) (type 2)
    call 3)
  (export "run" (func 4)))
