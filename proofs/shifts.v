(* Rings and shifts, and cuts that all worlds decide: theorem A for leaves that were tried and failed.

   Every ring of at least l people has l different shifts, of which one is 0. World i of a part gives everybody the value of the person so many places on in
   their ring. A cut passes if no value makes up more than 1/l of a side in any of the l worlds. Of a leaf that failed, the reader sees the groups, the
   circles, and the unordered set of the l worlds. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing cuts turns.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope group_scope.

Section Shifts.

Variables (n w : nat) (V L Z : finType) (U : eqType).
Notation l := w.+1.
Implicit Types (A B X : {set 'I_n}) (r q c : {perm 'I_n}) (t : table n V).

Definition shifts := {ffun {set 'I_n} -> {ffun 'I_l -> 'I_n.+1}}.

Definition valid_ring (h : shifts) X := [&& h X ord0 == ord0, [forall i, h X i < #|X|] & injectiveb (h X)].
Definition valid (h : shifts) := [forall X : {set 'I_n}, (l <= #|X|) ==> valid_ring h X].

(* A tie, the order in which people are dealt, the order of circles, and the shifts of each ring. *)
Definition lot := (Z * {perm 'I_n} * {perm 'I_n} * shifts)%type.

Definition act r (x : lot) : lot := (x.1.1.1, r * x.1.1.2, r * x.1.2, [ffun X : {set 'I_n} => x.2 (r @: X)]).

Variable choose : {set 'I_n} -> {ffun V -> nat} -> option ({set 'I_n} * {set 'I_n}).
Variable plan : {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> L.
Hypothesis two : forall A k A1 A2, choose A k = Some (A1, A2) -> [/\ A1 :|: A2 = A, [disjoint A1 & A2], A1 != set0 & A2 != set0].
Hypothesis one : one_of_each plan.

Section Part.

Variables (A : {set 'I_n}) (t : table n V) (x : lot).

Definition label := ring_of plan A t x.1.1.1 x.1.1.2.
Definition ring y := members A label (label y).

(* The person whose value y carries if rings turn by so many places. *)
Definition turned (d : {set 'I_n} -> nat) y := if y \in A then ahead (ring y) x.1.2 (d (ring y)) y else y.

Lemma in_ring y : y \in A -> y \in ring y.
Proof. by move=> yA; rewrite inE yA eqxx. Qed.

Lemma turned_in d y : (turned d y \in A) = (y \in A).
Proof.
rewrite /turned; case: ifP => [yA|-> //].
by have := ahead_in x.1.2 (d (ring y)) (in_ring yA); rewrite inE => /andP[].
Qed.

Lemma turned_label d y : y \in A -> label (turned d y) = label y.
Proof. by move=> yA; rewrite /turned yA; have := ahead_in x.1.2 (d (ring y)) (in_ring yA); rewrite inE => /andP[_ /eqP]. Qed.

Lemma turned_ring d y : y \in A -> ring (turned d y) = ring y.
Proof. by move=> yA; rewrite /ring turned_label. Qed.

Lemma turned_inj d : injective (turned d).
Proof.
move=> y z same; have : (y \in A) = (z \in A) by rewrite -(turned_in d y) same turned_in.
have [yA /esym zA|yA /esym zA] := boolP (y \in A); last by move: same; rewrite /turned (negPf yA) zA.
have rings : ring y = ring z by rewrite -(turned_ring d yA) same turned_ring.
move: same; rewrite /turned yA zA rings => /ahead_inj; apply; last exact: in_ring.
by rewrite -rings in_ring.
Qed.

Definition turn d := perm (@turned_inj d).

Definition world (i : 'I_l) y := t (turned (fun X => x.2 X i) y).

Definition pass A1 A2 := [forall i, forall v,
  (l * #|[set y in A1 | world i y == v]| <= #|A1|) && (l * #|[set y in A2 | world i y == v]| <= #|A2|)].

Definition circles : {ffun 'I_n -> 'I_n} := [ffun y => turned (fun=> 1%N) y].

Definition of_world i : {ffun 'I_n -> option V} := [ffun y => if y \in A then Some (world i y) else None].
Definition worlds := [set of_world i | i : 'I_l].

Definition failed := ({set {set 'I_n} * {set V}} * {ffun 'I_n -> 'I_n} * {set {ffun 'I_n -> option V}})%type.
Definition shows : failed := (groups A label t, circles, worlds).

End Part.

(* What leaves show that were not tried is another matter: it follows from the part, its values and its lots. *)
Variable untried : {set 'I_n} -> table n V -> lot -> U.
Hypothesis untried_still : forall A t x r, still r A -> untried A (moved t r) (act r x) = untried A t x.

Definition try A t x : (failed + U) + {set 'I_n} * {set 'I_n} :=
  if choose A (counts A t) is Some (A1, A2) then
    if pass A t x A1 A2 then inr (A1, A2) else inl (inl (shows A t x))
  else inl (inr (untried A t x)).

Lemma try_two : cuts_in_two try.
Proof.
move=> A t x A1 A2; rewrite /try; case at_A : (choose _ _) => [[B1 B2]|//].
by case: ifP => // _ [<- <-]; apply: two at_A.
Qed.

Section Moved.

Variables (A : {set 'I_n}) (t : table n V) (x : lot) (r : {perm 'I_n}).
Hypothesis rA : stays r A.

Lemma label_moved y : label A (moved t r) (act r x) y = label A t x (r y).
Proof. exact: ring_of_moved. Qed.

Lemma ring_moved y z : (z \in ring A (moved t r) (act r x) y) = (r z \in ring A t x (r y)).
Proof. by rewrite !inE !label_moved (staysP rA). Qed.

Lemma ring_image y : r @: ring A (moved t r) (act r x) y = ring A t x (r y).
Proof.
apply/setP=> z; apply/imsetP/idP => [[u + ->]|zr]; first by rewrite ring_moved.
by exists (r^-1 z); rewrite ?ring_moved permKV.
Qed.

Lemma turned_moved d d' y : (forall X, d' X = d (r @: X)) -> r (turned A (moved t r) (act r x) d' y) = turned A t x d (r y).
Proof.
move=> same; rewrite /turned (staysP rA); case: ifP => // yA.
rewrite same ring_image; apply: (ahead_moved (B := ring A t x (r y))); last exact: in_ring.
exact: ring_moved.
Qed.

Lemma world_moved i y : world A (moved t r) (act r x) i y = world A t x i (r y).
Proof. by rewrite /world ffunE (turned_moved (d := fun X => x.2 X i)) // => X; rewrite ffunE. Qed.

Lemma pass_moved A1 A2 : stays r A1 -> stays r A2 -> pass A (moved t r) (act r x) A1 A2 = pass A t x A1 A2.
Proof.
move=> r1 r2.
have same B i v : stays r B -> #|[set y in B | world A (moved t r) (act r x) i y == v]| = #|[set y in B | world A t x i y == v]|.
  move=> rB; rewrite -(card_imset _ (@perm_inj _ r)); congr #|pred_of_set _|.
  apply/setP=> y; apply/imsetP/idP => [[z + ->]|]; rewrite !inE.
    by rewrite world_moved (staysP rB).
  move=> yB; exists (r^-1 y); last by rewrite permKV.
  by rewrite inE world_moved -(staysP rB) permKV.
by apply: eq_forallb => i; apply: eq_forallb => v; rewrite !same.
Qed.

End Moved.

Lemma try_sides : sides_only try act.
Proof.
move=> A t x r A1 A2; rewrite /try; case at_A : (choose _ _) => [[B1 B2]|//].
case: ifP => // passed [<- <-] r1 r2.
have rA : stays r A by have [<- _ _ _] := two at_A; rewrite /stays imsetU (eqP r1) (eqP r2).
by rewrite counts_moved // at_A pass_moved // passed.
Qed.

Lemma shows_still A t x r : still r A -> shows A (moved t r) (act r x) = shows A t x.
Proof.
move=> id; have rA := still_stays id.
have same_label y : y \in A -> label A (moved t r) (act r x) y = label A t x y by move=> yA; rewrite label_moved ?id.
have same_members a : members A (label A (moved t r) (act r x)) a = members A (label A t x) a.
  by apply/setP=> y; rewrite !inE; case yA: (y \in A); rewrite //= same_label.
congr (_, _, _).
- apply: eq_imset => a; rewrite /group same_members; congr (_, _).
  by apply: eq_in_imset => y; rewrite inE ffunE => /andP[/id ->].
- apply/ffunP=> y; rewrite !ffunE; have [yA|yA] := boolP (y \in A); last by rewrite /turned (negPf yA).
  have := turned_moved t x rA (d := fun=> 1%N) (d' := fun=> 1%N) y (fun=> erefl).
  by rewrite (id _ yA) id // turned_in.
apply: eq_imset => i; apply/ffunP=> y; rewrite !ffunE; case: ifP => // yA.
by rewrite world_moved ?id.
Qed.

Lemma try_still : elsewhere_still try act.
Proof.
move=> A t x r id; have rA := still_stays id; rewrite /try counts_moved // shows_still // untried_still //.
case at_A : (choose _ _) => [[A1 A2]|//]; have [whole _ _ _] := two at_A.
by rewrite pass_moved //; apply: still_stays => y yA; apply: id; rewrite -whole inE yA ?orbT.
Qed.

(* The k-th of the worlds of a leaf takes the place of the true one: people carry its values, and shifts are counted from there. *)
Section Leaf.

Variables (A : {set 'I_n}) (k : 'I_l).

Definition to_world t x : {perm 'I_n} := turn A t x (fun X => x.2 X k).

Definition recount (h : shifts) : shifts := [ffun X : {set 'I_n} => if l <= #|X| then
  [ffun i => inord ((h X (tperm ord0 k i) + (#|X| - h X k)) %% #|X|)] else h X].

Definition other_lot t x : lot := (x.1.1.1, to_world t x * x.1.1.2, to_world t x * x.1.2, recount x.2).

Lemma recountE h X i : l <= #|X| -> recount h X i = (h X (tperm ord0 k i) + (#|X| - h X k)) %% #|X| :> nat.
Proof.
move=> large; rewrite !ffunE large ffunE inordK // ltnS ltnW //.
by apply: (leq_trans (ltn_pmod _ (leq_trans (ltn0Sn w) large))); rewrite -[n in _ <= n]card_ord max_card.
Qed.

Lemma valid_at h X : valid h -> l <= #|X| -> [/\ h X ord0 = ord0, forall i, h X i < #|X| & injective (h X)].
Proof. by move=> /forallP/(_ X)/implyP/[apply] /and3P[/eqP ? /forallP ? /injectiveP ?]. Qed.

Lemma recount_valid h : valid h -> valid (recount h).
Proof.
move=> ok; apply/forallP=> X; apply/implyP=> large; have [zero less inj] := valid_at ok large.
have some : 0 < #|X| by apply: leq_trans large.
apply/and3P; split.
- by rewrite -val_eqE /= recountE // tpermL subnKC ?modnn // ltnW.
- by apply/forallP=> i; rewrite recountE // ltn_pmod.
apply/injectiveP=> i j /(congr1 val) /=; rewrite !recountE // => /eqP.
rewrite eqn_modDr !modn_small // => /eqP /val_inj /inj; exact: perm_inj.
Qed.

Lemma recount_twice h : valid h -> recount (recount h) = h.
Proof.
move=> ok; apply/ffunP=> X; have [large|small] := boolP (l <= #|X|); last by rewrite !ffunE (negPf small) ?ffunE ?(negPf small).
have [zero less inj] := valid_at ok large; have some : 0 < #|X| by apply: leq_trans large.
apply/ffunP=> i; apply/val_inj; rewrite /= recountE // !recountE // tpermK tpermR zero add0n.
have [->|hk] := eqVneq (h X k : nat) 0%N; first by rewrite subn0 !modnn subn0 modnDr modn_mod modnDr modn_small.
have hk' : #|X| - h X k < #|X| by rewrite ltn_subrL lt0n hk.
by rewrite (modn_small hk') subKn ?(ltnW (less k)) // modnDml -addnA subnK ?(ltnW (less k)) // modnDr modn_small.
Qed.

Variables (t : table n V) (x : lot).
Hypothesis ok : valid x.2.
Hypothesis large : forall y, y \in A -> l <= #|ring A t x y|.

Let r := to_world t x.

Lemma to_worldE y : r y = turned A t x (fun X => x.2 X k) y.
Proof. by rewrite permE. Qed.

Lemma to_world_stays : stays r A.
Proof. by apply: stays_if => y yA; rewrite to_worldE turned_in. Qed.

Lemma to_world_outside y : y \notin A -> r y = y.
Proof. by move=> yA; rewrite to_worldE /turned (negPf yA). Qed.

Lemma label_same y : y \in A -> label A (moved t r) (other_lot t x) y = label A t x y.
Proof.
move=> yA; have := label_moved t x to_world_stays y; rewrite /label /= => ->.
by have := turned_label t x (fun X => x.2 X k) yA; rewrite -to_worldE.
Qed.

Lemma members_same a : members A (label A (moved t r) (other_lot t x)) a = members A (label A t x) a.
Proof. by apply/setP=> y; rewrite !inE; case yA: (y \in A); rewrite //= label_same. Qed.

Lemma ring_same y : y \in A -> ring A (moved t r) (other_lot t x) y = ring A t x y.
Proof. by move=> yA; rewrite /ring members_same label_same. Qed.

Lemma circle_same d y : y \in A -> ahead (ring A t x y) (r * x.1.2) d y = ahead (ring A t x y) x.1.2 d y.
Proof.
move=> yA; set R := ring A t x y; have yR : y \in R := in_ring t x yA.
have onR z : z \in R -> r z = ahead R x.1.2 (x.2 R k) z.
  rewrite inE => /andP[zA /eqP zl]; rewrite to_worldE /turned zA.
  by have -> : ring A t x z = R by rewrite /ring zl.
have rR : forall z, (z \in R) = (r z \in R).
  move=> z; have stay : stays r R by apply: stays_if => u uR; rewrite onR // ahead_in.
  by rewrite (staysP stay).
apply: (@perm_inj _ r); rewrite (ahead_moved x.1.2 d rR yR) onR // onR ?ahead_in //.
by rewrite !ahead_ahead // addnC.
Qed.

Lemma turned_same d y : turned A (moved t r) (other_lot t x) d y = turned A t x d y.
Proof. by rewrite /turned; case: ifP => // yA; rewrite ring_same //= circle_same. Qed.

Lemma world_same i y : y \in A -> world A (moved t r) (other_lot t x) i y = world A t x (tperm ord0 k i) y.
Proof.
move=> yA; rewrite /world turned_same ffunE to_worldE; congr (t _).
have yR := in_ring t x yA; have [_ less _] := valid_at ok (large yA).
rewrite {1}/turned turned_in yA turned_ring // /turned yA ahead_ahead //=.
rewrite -ahead_mod // recountE ?large // modnDml -addnA subnK ?(ltnW (less k)) // modnDr.
by rewrite ahead_mod.
Qed.

Lemma shows_same : shows A (moved t r) (other_lot t x) = shows A t x.
Proof.
congr (_, _, _).
- apply: eq_imset => a; rewrite /group members_same; congr (_, _).
  have stay : stays r (members A (label A t x) a).
    by apply: stays_if => y; rewrite !inE => /andP[yA /eqP <-]; rewrite (staysP to_world_stays) yA to_worldE turned_label ?eqxx.
  by rewrite -[in RHS](eqP stay) -imset_comp; apply: eq_imset => y; rewrite /= ffunE.
- by apply/ffunP=> y; rewrite !ffunE turned_same.
have same i : of_world A (moved t r) (other_lot t x) i = of_world A t x (tperm ord0 k i).
  by apply/ffunP=> y; rewrite !ffunE; case: ifP => // yA; rewrite world_same.
apply/setP=> f; apply/imsetP/imsetP => [[i _ ->]|[i _ ->]]; first by exists (tperm ord0 k i); rewrite ?same.
by exists (tperm ord0 k i); rewrite ?same ?tpermK.
Qed.

Lemma pass_same A1 A2 : A1 \subset A -> A2 \subset A -> pass A (moved t r) (other_lot t x) A1 A2 = pass A t x A1 A2.
Proof.
move=> sub1 sub2.
have same B i v : B \subset A -> [set y in B | world A (moved t r) (other_lot t x) i y == v] =
    [set y in B | world A t x (tperm ord0 k i) y == v].
  by move=> sub; apply/setP=> y; rewrite !inE; case yB: (y \in B); rewrite //= world_same ?(subsetP sub).
apply/forallP/forallP => all i; apply/forallP=> v.
  have := all (tperm ord0 k i) => /forallP /(_ v).
  by rewrite !same // tpermK.
by have := all (tperm ord0 k i) => /forallP /(_ v); rewrite !same.
Qed.

Lemma try_same f : try A t x = inl (inl f) -> try A (moved t r) (other_lot t x) = inl (inl f).
Proof.
rewrite /try counts_moved; last exact: to_world_stays.
case at_A : (choose _ _) => [[A1 A2]|//]; have [whole _ _ _] := two at_A.
by rewrite pass_same ?shows_same // -whole ?subsetUl ?subsetUr.
Qed.

Lemma back : to_world (moved t r) (other_lot t x) = r^-1.
Proof.
apply/permP=> y; apply: (@perm_inj _ r); rewrite permKV.
have -> : to_world (moved t r) (other_lot t x) y = turned A t x (fun X => recount x.2 X k) y.
  by rewrite permE turned_same.
have [yA|yA] := boolP (y \in A); last by rewrite /turned (negPf yA) to_world_outside.
rewrite to_worldE {1}/turned turned_in yA turned_ring // /turned yA ahead_ahead ?in_ring //=.
have [zero less _] := valid_at ok (large yA).
rewrite -ahead_mod ?in_ring // recountE ?large // tpermR zero add0n modnDml subnK ?(ltnW (less k)) // modnn.
by rewrite ahead0 // in_ring.
Qed.

Lemma back_lot : other_lot (moved t r) (other_lot t x) = x.
Proof.
rewrite {1}/other_lot back /= !mulKg recount_twice //.
by case: x => [[[? ?] ?] ?].
Qed.

End Leaf.

End Shifts.
